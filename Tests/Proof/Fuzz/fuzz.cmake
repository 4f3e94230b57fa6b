# Runs the fuzz targets: `ctest -L fuzz`. The test uses the same inputs each time. Fuzz/README.md
# describes how to search for new inputs.

add_check(fuzz LABELS fuzz COST 100 PACKAGES python3
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/run --inputs 8000 --seed 1 --build ${PROJECT_BINARY_DIR}/fuzz
    --swiftc ${MULTICAST_SWIFTC})
