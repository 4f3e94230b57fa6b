# The tests that run on macOS in addition to the tests of the C harness. The section 'macOS' of
# CONTRIBUTING.md lists what else has to be run on macOS.

add_check(interface_of_the_static_library LABELS interface everyday COST 60
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run-harness $<TARGET_FILE:interface_tests_static>)
add_check(cpp_header LABELS interface everyday COST 5
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run-harness $<TARGET_FILE:cpp_header_tests>)
foreach(library multicast multicast_static)
  add_check(exports_are_the_header_${library} LABELS interface everyday
    COMMAND ${interface_dir}/check-exports ${PROJECT_SOURCE_DIR}/include/multicast.h
      $<TARGET_FILE:${library}>)
endforeach()
add_check(stress LABELS stress TIMEOUT 600 COST 20
  COMMAND $<TARGET_FILE:stress> --seconds 20)
if(MULTICAST_BUILD_EXAMPLES)
  foreach(name 01_dispatch 05_protocol 16_shared_context)
    add_check(example_${name} LABELS examples everyday COMMAND $<TARGET_FILE:example_${name}>)
  endforeach()
endif()
add_check(swift_package LABELS interop TIMEOUT 1800 COST 300
  COMMAND swift test --package-path ${PROJECT_SOURCE_DIR}
    --scratch-path ${PROJECT_BINARY_DIR}/swift-package)

# Tests/run builds this target for the everyday tests. None of the tests needs a Debian package.
add_custom_target(everyday DEPENDS
  multicast multicast_static interface_tests interface_tests_static cpp_header_tests)
if(MULTICAST_BUILD_EXAMPLES)
  add_dependencies(everyday example_01_dispatch example_05_protocol example_16_shared_context)
endif()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/Tests/packages CONTENT "")
