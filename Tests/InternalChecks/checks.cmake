# The C harness where the library verifies itself after each change.

add_rebuild_test(internal_checks Ninja
  OPTIONS -DMULTICAST_INTERNAL_CHECKS=ON COMMAND interface_tests)
add_rebuild_test(internal_checks_sanitize_thread Ninja
  OPTIONS -DMULTICAST_INTERNAL_CHECKS=ON -DMULTICAST_SANITIZE=thread COMMAND interface_tests)
set_tests_properties(internal_checks PROPERTIES FIXTURES_SETUP internal_checks_tree)

add_test(NAME internal_checks_find_what_is_not_supported
  COMMAND ${PROJECT_BINARY_DIR}/internal_checks/Tests/unsupported_tests)
set_tests_properties(internal_checks_find_what_is_not_supported PROPERTIES
  FIXTURES_REQUIRED internal_checks_tree LABELS build TIMEOUT 300)
