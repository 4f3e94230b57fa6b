# libFuzzer against a model of the header's rules, and with arbitrary arguments. `ctest -L fuzz`.

add_test(NAME fuzz
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --seconds 60 --build ${PROJECT_BINARY_DIR}/fuzz
    --swiftc ${MULTICAST_SWIFTC})
set_tests_properties(fuzz PROPERTIES
  LABELS fuzz TIMEOUT 600 SKIP_RETURN_CODE 77 RESOURCE_LOCK apt)
