# Builds multicast-trace and the shared object that it loads into programs. In the build tree, both
# are in the same folder. They are installed in bin and lib/multicast. Both need only libc, not
# libmulticast.

set(multicast_trace_folder ../lib/multicast)
if(MULTICAST_INSTALL)
  include(GNUInstallDirs)
  file(RELATIVE_PATH multicast_trace_folder
    ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/multicast)
endif()

add_executable(multicast-trace Sources/MulticastTrace/multicast-trace.c)
target_compile_definitions(multicast-trace PRIVATE
  MULTICAST_TRACE_FOLDER="${multicast_trace_folder}")
# reports.c finds the names of functions without calling the loader.
add_library(multicast-trace-object MODULE Sources/MulticastTrace/preload.c
  Sources/MulticastTrace/timeline.c Sources/MulticastShims/linux/reports.c
  Sources/MulticastShims/common/write.c)
add_dependencies(multicast-trace multicast-trace-object)
foreach(target multicast-trace multicast-trace-object)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden)
  target_include_directories(${target} PRIVATE include Sources/MulticastShims/include)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
endforeach()
set_target_properties(multicast-trace-object PROPERTIES
  PREFIX "" OUTPUT_NAME libmulticast-trace SUFFIX .so
  LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:multicast-trace>)
target_link_libraries(multicast-trace-object PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
# The shared object stays loaded, because threads may still call into it after the program's
# destructors have run.
target_link_options(multicast-trace-object PRIVATE
  LINKER:-z,now LINKER:-z,nodelete ${multicast_no_undefined} LINKER:--gc-sections)
