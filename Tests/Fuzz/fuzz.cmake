# libFuzzer against a model of the header's rules, and with arbitrary arguments. `ctest -L fuzz`.

add_check(fuzz LABELS fuzz COST 100
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --seconds 60 --build ${PROJECT_BINARY_DIR}/fuzz
    --swiftc ${MULTICAST_SWIFTC})
