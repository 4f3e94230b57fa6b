# libmulticast-mqtt with brokers of its own.

set(mqtt_packages gcc libmosquitto-dev mosquitto mosquitto-clients openssl abigail-tools)
add_check(mqtt LABELS mqtt TIMEOUT 900 COST 90 PACKAGES ${mqtt_packages}
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/MQTT/run $<TARGET_FILE:multicast> ${PROJECT_BINARY_DIR}/mqtt)
foreach(sanitizer address thread)
  add_check(sanitize_${sanitizer}_mqtt LABELS sanitize TIMEOUT 900 COST 120 SANITIZED
    NEEDS sanitize_${sanitizer}_tree PACKAGES ${mqtt_packages}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/MQTT/run
      ${PROJECT_BINARY_DIR}/sanitize_${sanitizer}/libmulticast.so
      ${PROJECT_BINARY_DIR}/mqtt-${sanitizer} --sanitize ${sanitizer})
endforeach()
