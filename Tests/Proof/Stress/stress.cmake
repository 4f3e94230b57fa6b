# In total, the stress tests take half a minute. Each run uses a random seed and prints it.

# add_stress_test(name tree seconds options ...) adds a test that runs the stress program of this
# build with the library of the build tree `tree`. If `tree` is empty, the test uses the library of
# this build. If the tree has a sanitizer, the test runs that tree's own stress program. A tree
# NAME_posix with a sanitizer contains only a library, so the test runs the stress program of the
# tree NAME.
function(add_stress_test name tree seconds)
  set(labels stress)
  if(tree MATCHES "sanitize")
    list(APPEND labels sanitize)
  endif()
  set(program $<TARGET_FILE:stress>)
  set(fixture)
  set(environment)
  if(NOT tree STREQUAL "")
    set(fixture ${tree}_tree)
    set(environment LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/${tree})
  endif()
  if(tree MATCHES "sanitize")
    string(REGEX REPLACE "_posix$" "" programs ${tree})
    set(program ${PROJECT_BINARY_DIR}/${programs}/Tests/stress)
    if(NOT programs STREQUAL tree)
      list(APPEND fixture ${programs}_tree)
    endif()
  endif()
  # The program keeps all processors busy.
  add_check(stress_${name} LABELS ${labels} TIMEOUT 300 COST ${seconds} NEEDS ${fixture} SANITIZED
    ENVIRONMENT ${environment}
    COMMAND ${program} --seconds ${seconds} ${ARGN})
  set_tests_properties(stress_${name} PROPERTIES PROCESSORS 2)
endfunction()

add_stress_test(plain "" 6)
set_property(TEST stress_plain APPEND PROPERTY LABELS everyday)
add_stress_test(without_membarrier "" 4 --without-membarrier)
add_stress_test(built_without_membarrier built_without_membarrier 3)
add_stress_test(posix posix 4)
add_stress_test(internal_checks internal_checks 4)
add_stress_test(internal_checks_without_membarrier internal_checks 3 --without-membarrier)
add_stress_test(sanitize_thread sanitize_thread 5)
add_stress_test(sanitize_thread_without_membarrier sanitize_thread 4 --without-membarrier)
add_stress_test(sanitize_thread_posix sanitize_thread_posix 4)
add_stress_test(sanitize_address sanitize_address 4)

# `mutate` is not a test, because it takes an hour. This test only checks that the mutations still
# fit the sources.
add_check(stress_mutations_apply LABELS stress TIMEOUT 60 PACKAGES python3
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/mutate --check)
