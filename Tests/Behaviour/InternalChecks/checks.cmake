# Runs the C harness with a library that verifies its own data after each change.

add_tree(internal_checks build OPTIONS -DMULTICAST_INTERNAL_CHECKS=ON TARGETS multicast)
add_library_check(internal_checks internal_checks build 30 interface_tests)
add_library_check(internal_checks_find_what_is_not_supported internal_checks build 10
  unsupported_tests)
