# Tests that the internal checks detect unsupported use. This program runs with a library that has
# been built with these checks.

add_executable(unsupported_tests ${CMAKE_CURRENT_SOURCE_DIR}/Behaviour/InternalChecks/unsupported.c)
target_link_libraries(unsupported_tests PRIVATE multicast harness Threads::Threads)
target_include_directories(unsupported_tests PRIVATE ${interface_dir})
target_compile_options(unsupported_tests PRIVATE ${callback_flags} ${multicast_sanitize_flags})
target_link_options(unsupported_tests PRIVATE ${multicast_sanitize_flags})
set_target_properties(unsupported_tests PROPERTIES
  C_STANDARD 99 C_EXTENSIONS ON C_STANDARD_REQUIRED ON)
