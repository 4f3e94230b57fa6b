# The reference: HTML and man pages, by Doxygen, from multicast.h, and from the headers of the
# transports that are built.
#
#   cmake --build build --target docs
#
# The target is there in any case; where a tool is missing, building it fails and says which.

set(multicast_docs ${PROJECT_BINARY_DIR}/docs)
set(multicast_docs_dir ${PROJECT_SOURCE_DIR}/cmake/docs)
set(multicast_archived_man ${PROJECT_SOURCE_DIR}/man)
if(MULTICAST_INSTALL)
  include(GNUInstallDirs)
endif()

# multicast_add_reference(header output component): into OUTPUT/html and OUTPUT/man.
set(multicast_docs_made)
function(multicast_add_reference header output component)
  add_custom_command(
    OUTPUT ${output}/made
    COMMAND ${CMAKE_COMMAND} -DHEADER=${PROJECT_SOURCE_DIR}/include/${header}
      -DVERSION=${PROJECT_VERSION} -DOUTPUT=${output} -P ${multicast_docs_dir}/Build.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${output}/made
    DEPENDS ${PROJECT_SOURCE_DIR}/include/${header} ${multicast_docs_dir}/Build.cmake
      ${multicast_docs_dir}/Doxyfile.in ${multicast_docs_dir}/header.awk ${multicast_docs_dir}/man.py
    VERBATIM
    COMMENT "Making the reference of ${header}: html/index.html and man in ${output}")
  set(multicast_docs_made ${multicast_docs_made} ${output}/made PARENT_SCOPE)
  # The man pages, if they have been made; the archive of a release has them.
  if(MULTICAST_INSTALL)
    set(if_made OPTIONAL)
    set(man ${output}/man)
    if(MULTICAST_DOCS)
      set(if_made)
    elseif(EXISTS ${multicast_archived_man})
      get_filename_component(name ${header} NAME_WE)
      set(man ${multicast_archived_man}/${name})
    endif()
    install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR}
      COMPONENT ${component} ${if_made})
  endif()
endfunction()

multicast_add_reference(multicast.h ${multicast_docs} multicast_development)
foreach(transport mqtt nats)
  string(TOUPPER ${transport} option)
  if(MULTICAST_${option})
    multicast_add_reference(multicast_${transport}.h ${multicast_docs}/${transport}
      multicast_${transport}_development)
  endif()
endforeach()

set(multicast_docs_in_all)
if(MULTICAST_DOCS)
  set(multicast_docs_in_all ALL)
endif()
add_custom_target(docs ${multicast_docs_in_all} DEPENDS ${multicast_docs_made})
