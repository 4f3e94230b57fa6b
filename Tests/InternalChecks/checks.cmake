# The C harness where the library verifies itself after each change.

add_tree(internal_checks build OPTIONS -DMULTICAST_INTERNAL_CHECKS=ON ${quick_to_build}
  TARGETS interface_tests unsupported_tests stress)
add_tree_check(internal_checks internal_checks build 30 interface_tests)
add_tree_check(internal_checks_find_what_is_not_supported internal_checks build 10
  unsupported_tests)
