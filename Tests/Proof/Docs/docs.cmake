# Doxygen generates HTML references from all headers, and man pages from the C headers.

add_test(NAME docs
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/check --build ${PROJECT_BINARY_DIR}/docs-check
    --cmake ${CMAKE_COMMAND} --swiftc ${MULTICAST_SWIFTC})
set_tests_properties(docs PROPERTIES
  LABELS static TIMEOUT 300 SKIP_RETURN_CODE 77 RESOURCE_LOCK apt)
