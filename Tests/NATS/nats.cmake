# libmulticast-nats with servers of its own.

set(nats_packages gcc libnats-dev nats-server openssl abigail-tools)
add_check(nats LABELS nats TIMEOUT 900 COST 60 PACKAGES ${nats_packages}
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/NATS/run $<TARGET_FILE:multicast> ${PROJECT_BINARY_DIR}/nats)
foreach(sanitizer address thread)
  add_check(sanitize_${sanitizer}_nats LABELS sanitize TIMEOUT 900 COST 90 SANITIZED
    NEEDS sanitize_${sanitizer}_tree PACKAGES ${nats_packages}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/NATS/run
      ${PROJECT_BINARY_DIR}/sanitize_${sanitizer}/libmulticast.so
      ${PROJECT_BINARY_DIR}/nats-${sanitizer} --sanitize ${sanitizer})
endforeach()
