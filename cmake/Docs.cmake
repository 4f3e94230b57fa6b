# The reference: HTML and man pages, by Doxygen, from multicast.h.
#
#   cmake --build build --target docs
#
# The target is there in any case; where a tool is missing, building it fails and says which.

set(multicast_docs ${PROJECT_BINARY_DIR}/docs)
set(multicast_docs_dir ${PROJECT_SOURCE_DIR}/cmake/docs)
add_custom_command(
  OUTPUT ${multicast_docs}/made
  COMMAND ${CMAKE_COMMAND} -DHEADER=${PROJECT_SOURCE_DIR}/include/multicast.h
    -DVERSION=${PROJECT_VERSION} -DOUTPUT=${multicast_docs} -P ${multicast_docs_dir}/Build.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${multicast_docs}/made
  DEPENDS ${PROJECT_SOURCE_DIR}/include/multicast.h ${multicast_docs_dir}/Build.cmake
    ${multicast_docs_dir}/Doxyfile.in ${multicast_docs_dir}/header.awk ${multicast_docs_dir}/man.py
  VERBATIM
  COMMENT "Making the reference: docs/html/index.html and docs/man")

set(multicast_docs_in_all)
if(MULTICAST_DOCS)
  set(multicast_docs_in_all ALL)
endif()
add_custom_target(docs ${multicast_docs_in_all} DEPENDS ${multicast_docs}/made)

# The man pages, if they have been made.
if(MULTICAST_INSTALL)
  include(GNUInstallDirs)
  set(multicast_docs_if_made OPTIONAL)
  if(MULTICAST_DOCS)
    set(multicast_docs_if_made)
  endif()
  install(DIRECTORY ${multicast_docs}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}
    COMPONENT multicast_development ${multicast_docs_if_made})
endif()
