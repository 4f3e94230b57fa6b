# These tests simulate failures: the system refuses memory, threads, descriptors or memory barriers,
# waits are disturbed, and processes fork and exit at any moment. `ctest -L fault` runs these tests.

set(faults_dir ${CMAKE_CURRENT_LIST_DIR})
file(GLOB fault_sources CONFIGURE_DEPENDS ${faults_dir}/*.c)
list(FILTER fault_sources EXCLUDE REGEX "/(least_malloc|plugin|unloading)\\.c$")
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  list(FILTER fault_sources EXCLUDE REGEX "steps\\.c$")
endif()

# Generate the source that calls every function.
set(fault_calls ${PROJECT_BINARY_DIR}/Tests/fault_calls.c)
generate(${fault_calls} ${faults_dir}/calls.py ${faults_dir}/functions.c ${faults_dir}/functions.h)

# The program replaces libc functions. It links the shared library, so that the library's own calls
# also reach the replacements.
add_executable(fault_tests ${fault_sources} ${fault_calls})
target_include_directories(fault_tests PRIVATE ${faults_dir})
target_link_libraries(fault_tests PRIVATE harness multicast Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(fault_tests PRIVATE
  LEAST_MALLOC="$<TARGET_FILE_NAME:least_malloc>"
  LEAST_MALLOC_DIRECTORY="$<TARGET_FILE_DIR:least_malloc>")

# Builds a library for LD_PRELOAD. It implements functions of libc with loops, which the compiler
# must not replace with calls to the same functions.
add_library(least_malloc MODULE ${faults_dir}/least_malloc.c)
target_compile_definitions(least_malloc PRIVATE _GNU_SOURCE)
target_compile_options(least_malloc PRIVATE -fno-builtin)
target_link_libraries(least_malloc PRIVATE Threads::Threads)
add_dependencies(fault_tests least_malloc)

add_library(fault_plugin MODULE ${faults_dir}/plugin.c)
add_executable(unloading ${faults_dir}/unloading.c)
# These targets do not link the library, because a linked library could never be unloaded.
foreach(target fault_plugin unloading)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
endforeach()
target_compile_definitions(unloading PRIVATE _GNU_SOURCE)
target_link_libraries(unloading PRIVATE Threads::Threads ${CMAKE_DL_LIBS})

foreach(target fault_tests fault_plugin least_malloc unloading)
  target_compile_options(${target} PRIVATE ${callback_flags})
  set_target_properties(${target} PROPERTIES
    C_STANDARD 99 C_EXTENSIONS OFF C_STANDARD_REQUIRED ON)
endforeach()

add_tests_of_sources(fault_tests fault ${fault_sources})
# These two tests also belong to the everyday tests, because none of the interface tests makes every
# allocation of every function fail.
set_property(TEST out_of_memory_at_each_allocation_of_each_function
  out_of_memory_again_and_again_leaks_nothing_of_any_function APPEND PROPERTY LABELS everyday)
# Each of these tests needs gigabytes of memory, so only one of them runs at a time.
file(STRINGS ${faults_dir}/limits.c limits REGEX "^TEST\\(")
list(TRANSFORM limits REPLACE "^TEST\\(([a-z_0-9]+)\\).*" "\\1")
set_tests_properties(${limits} PROPERTIES RESOURCE_LOCK gigabytes COST 20 TIMEOUT 550)

add_check(dlclose_of_the_library_inside_of_a_call_leaves_it_mapped LABELS fault TIMEOUT 150
  COMMAND unloading $<TARGET_FILE:multicast>)
add_check(dlclose_of_plugin_after_its_lifetime_unloads_it LABELS fault TIMEOUT 150
  COMMAND unloading $<TARGET_FILE:multicast> $<TARGET_FILE:fault_plugin>)

# Run some interface tests with a malloc() that never aligns blocks to more than 16 bytes. The path
# is relative, because LD_PRELOAD cannot contain a path with a space.
add_check(interface_with_the_least_alignment_of_malloc LABELS fault COST 10
  COMMAND ${CMAKE_COMMAND} -E chdir $<TARGET_FILE_DIR:least_malloc>
    ${CMAKE_COMMAND} -E env LD_PRELOAD=./$<TARGET_FILE_NAME:least_malloc> ${faults_dir}/../../run-harness $<TARGET_FILE:interface_tests> ${smoke_tests} large_ invoke_with queue_payloads)
set_tests_properties(interface_with_the_least_alignment_of_malloc PROPERTIES
  FAIL_REGULAR_EXPRESSION "cannot be preloaded")

add_check(race_detectors_find_the_race_and_no_other LABELS fault COST 15 PACKAGES valgrind
  COMMAND ${faults_dir}/../Races/run $<TARGET_FILE:multicast> ${PROJECT_BINARY_DIR}/races)

# These tests run a representative part of each harness; the script's --all option runs the rest.
foreach(harness interface fault)
  add_check(memcheck_of_the_${harness}_tests LABELS fault COST 60 PACKAGES valgrind
    COMMAND ${faults_dir}/memcheck $<TARGET_FILE:${harness}_tests>)
endforeach()
