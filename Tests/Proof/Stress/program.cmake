# Builds the stress program in each build tree that runs it.

file(GLOB stress_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/Proof/Stress/*.c)
add_executable(stress ${stress_sources})
target_link_libraries(stress PRIVATE harness multicast Threads::Threads)
target_compile_options(stress PRIVATE ${callback_flags} ${multicast_sanitize_flags})
target_link_options(stress PRIVATE ${multicast_sanitize_flags})
set_target_properties(stress PROPERTIES C_STANDARD 99 C_EXTENSIONS ON C_STANDARD_REQUIRED ON)
