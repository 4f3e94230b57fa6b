# Half a minute in all; hours with --seconds. Each run has another seed, which it prints.

# add_stress_test(name tree seconds options ...)
function(add_stress_test name tree seconds)
  set(program ${PROJECT_BINARY_DIR}/${tree}/Tests/stress)
  if(tree STREQUAL "")
    set(program stress)
  endif()
  add_test(NAME stress_${name} COMMAND ${program} --seconds ${seconds} ${ARGN})
  set_tests_properties(stress_${name} PROPERTIES LABELS stress TIMEOUT 300
    FAIL_REGULAR_EXPRESSION "WARNING: ThreadSanitizer;ERROR: AddressSanitizer;ERROR: LeakSanitizer")
  if(NOT tree STREQUAL "")
    set_tests_properties(stress_${name} PROPERTIES FIXTURES_REQUIRED ${tree}_tree)
  endif()
endfunction()

add_stress_test(plain "" 6)
add_stress_test(without_membarrier "" 4 --without-membarrier)
add_stress_test(built_without_membarrier built_without_membarrier 3)
add_stress_test(internal_checks internal_checks 4)
add_stress_test(internal_checks_without_membarrier internal_checks 3 --without-membarrier)
add_stress_test(sanitize_thread sanitize_thread 5)
add_stress_test(sanitize_thread_without_membarrier sanitize_thread 4 --without-membarrier)
add_stress_test(sanitize_address sanitize_address 4)

# `mutate` takes an hour and is not a test. This checks that each of its mutations can be made.
add_test(NAME stress_mutations_apply COMMAND ${CMAKE_CURRENT_LIST_DIR}/mutate --check)
set_tests_properties(stress_mutations_apply PROPERTIES
  LABELS stress TIMEOUT 60 SKIP_RETURN_CODE 77)
