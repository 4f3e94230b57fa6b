# Builds the reference with Doxygen: man pages for the C headers, and HTML for all headers. The HTML
# of multicast.h also contains the examples.
#
#   cmake --build build --target docs
#
# The target always exists. If a tool is missing, building the target fails with a message that
# names it.

set(multicast_docs ${PROJECT_BINARY_DIR}/docs)
set(multicast_docs_dir ${PROJECT_SOURCE_DIR}/cmake/docs)
set(multicast_archived_man ${PROJECT_SOURCE_DIR}/man)
if(MULTICAST_INSTALL)
  include(GNUInstallDirs)
endif()

# multicast_add_reference(header output): generates OUTPUT/html and OUTPUT/man.
file(GLOB_RECURSE multicast_docs_needed ${multicast_docs_dir}/*
  ${PROJECT_SOURCE_DIR}/include/multicast/*.hpp ${PROJECT_SOURCE_DIR}/examples-c/*.c)
set(multicast_docs_made)
function(multicast_add_reference header output)
  add_custom_command(
    OUTPUT ${output}/made
    COMMAND ${CMAKE_COMMAND} -DHEADER=${PROJECT_SOURCE_DIR}/include/${header}
      -DVERSION=${PROJECT_VERSION} -DOUTPUT=${output} -P ${multicast_docs_dir}/Build.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${output}/made
    DEPENDS ${PROJECT_SOURCE_DIR}/include/${header} ${multicast_docs_needed}
    VERBATIM
    COMMENT "Making the reference of ${header}: html/index.html and man in ${output}")
  set(multicast_docs_made ${multicast_docs_made} ${output}/made PARENT_SCOPE)
endfunction()

# multicast_install_man(name output component): installs the man pages of NAME.h, if they have been
# generated or come with a release archive.
function(multicast_install_man name output component)
  set(if_made OPTIONAL)
  set(man ${output}/man)
  if(MULTICAST_DOCS)
    set(if_made)
  elseif(EXISTS ${multicast_archived_man})
    set(man ${multicast_archived_man}/${name})
  endif()
  install(DIRECTORY ${man}/ DESTINATION ${CMAKE_INSTALL_MANDIR}
    COMPONENT ${component} ${if_made})
endfunction()

# The HTML of multicast.h has links to the other references, so all of them are generated.
multicast_add_reference(multicast.h ${multicast_docs})
multicast_add_reference(multicast.hpp ${multicast_docs}/cpp)
if(MULTICAST_INSTALL)
  multicast_install_man(multicast ${multicast_docs} multicast_development)
endif()
foreach(transport local mqtt nats)
  multicast_add_reference(multicast_${transport}.h ${multicast_docs}/${transport})
  string(TOUPPER ${transport} option)
  if(MULTICAST_${option} AND MULTICAST_INSTALL)
    multicast_install_man(multicast_${transport} ${multicast_docs}/${transport}
      multicast_${transport}_development)
  endif()
endforeach()

set(multicast_docs_in_all)
if(MULTICAST_DOCS)
  set(multicast_docs_in_all ALL)
endif()
add_custom_target(docs ${multicast_docs_in_all} DEPENDS ${multicast_docs_made})
