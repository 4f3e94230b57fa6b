# Tests of libmulticast-local, libmulticast-mqtt and libmulticast-nats. The tests of
# libmulticast-mqtt and libmulticast-nats start their own brokers.

set(local_packages)
set(mqtt_packages libmosquitto-dev mosquitto mosquitto-clients)
set(nats_packages libnats-dev nats-server)
set(transport_packages gcc openssl abigail-tools ${mqtt_packages} ${nats_packages})

# add_transport(NAME COST LABEL ...) adds the tests that Tests/Processes/NAME/run runs.
function(add_transport folder cost)
  string(TOLOWER ${folder} name)
  set(packages gcc openssl abigail-tools ${${name}_packages})
  set(run ${CMAKE_CURRENT_SOURCE_DIR}/Processes/${folder}/run)
  add_check(${name} LABELS ${ARGN} TIMEOUT 900 COST ${cost} PACKAGES ${packages}
    COMMAND ${run} $<TARGET_FILE:multicast> ${PROJECT_BINARY_DIR}/${name})
  math(EXPR cost "${cost} + 30")
  foreach(sanitizer address thread)
    set(tree sanitize_${sanitizer})
    add_check(${tree}_${name} LABELS sanitize TIMEOUT 900 COST ${cost} SANITIZED
      NEEDS ${tree}_tree PACKAGES ${packages}
      COMMAND ${run} ${PROJECT_BINARY_DIR}/${tree}/libmulticast.so
        ${PROJECT_BINARY_DIR}/${name}-${sanitizer} --sanitize ${sanitizer})
  endforeach()
endfunction()

add_transport(Local 40 local everyday)
add_transport(MQTT 90 mqtt)
add_transport(NATS 60 nats)

add_check(transports_bridge LABELS mqtt nats TIMEOUT 300 COST 20
  PACKAGES ${mqtt_packages} ${nats_packages} gcc
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/Processes/Transports/check-bridge
    $<TARGET_FILE:multicast> ${PROJECT_BINARY_DIR}/transports-bridge)

# With `--seconds 600 --step 1` this test kills processes at every possible moment.
add_check(local_kill LABELS local everyday TIMEOUT 300 COST 20 PACKAGES gcc
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/Processes/Local/Kill/run $<TARGET_FILE:multicast>
    ${PROJECT_BINARY_DIR}/local-kill)

# Checks only that the benchmark still runs. The measured figures are meaningless.
add_check(local_benchmark LABELS local bench TIMEOUT 300 COST 20
  PACKAGES ${mqtt_packages} ${nats_packages} gcc libzmq3-dev python3-matplotlib
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/Processes/Local/Benchmark/run $<TARGET_FILE:multicast>
    ${PROJECT_BINARY_DIR}/local-benchmark --quick)
