# Builds the wheel for Python, which contains the library and an extension for the stable ABI:
#
#   cmake --build build --target wheel && pip install build/multicast-*.whl
#
# The target always exists; without Python or its headers it fails and says what to install. A build
# for another processor or libc makes the wheel for that platform.

find_program(MULTICAST_PYTHON NAMES python3 NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(MULTICAST_PYTHON)
set(multicast_python_headers)
if(MULTICAST_PYTHON)
  execute_process(COMMAND ${MULTICAST_PYTHON} -c
    "import sysconfig as s; print(s.get_path('include'), s.get_config_h_filename(), sep=';', end='')"
    OUTPUT_VARIABLE multicast_python_paths)
  if(multicast_python_paths MATCHES ";")
    list(GET multicast_python_paths 0 multicast_python_headers)
    list(GET multicast_python_paths 1 multicast_python_config)
  endif()
endif()
if(NOT EXISTS "${multicast_python_headers}/Python.h")
  # Makes the next build run CMake again, so that it looks for the headers again.
  file(TOUCH ${PROJECT_BINARY_DIR}/without-python)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_BINARY_DIR}/without-python)
  add_custom_target(wheel
    COMMAND ${CMAKE_COMMAND} -E echo
      "The wheel needs python3 and its headers: Python.h was not found. Install python3-dev (sudo apt-get install python3-dev)."
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/without-python
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
  return()
endif()

set(multicast_wheel ${PROJECT_BINARY_DIR}/wheel)
# Debian's Python headers include a configuration file for the target's processor, but Debian
# installs only the file for this machine's processor. From this file, the stable ABI needs only the
# sizes of C types, which are the same for all of these processors.
get_filename_component(multicast_python_version ${multicast_python_headers} NAME)
foreach(processor x86_64 aarch64 riscv64)
  configure_file(${multicast_python_config}
    ${multicast_wheel}/include/${processor}-linux-gnu/${multicast_python_version}/pyconfig.h COPYONLY)
endforeach()

add_library(multicast_python MODULE EXCLUDE_FROM_ALL Sources/Python/_core.c)
target_include_directories(multicast_python SYSTEM PRIVATE
  ${multicast_python_headers} ${multicast_wheel}/include)
target_compile_options(multicast_python PRIVATE -O2 -Wall -Wextra
  -Wno-missing-field-initializers -Wno-unused-parameter)
target_link_libraries(multicast_python PRIVATE multicast)
set_target_properties(multicast_python PROPERTIES
  PREFIX "" OUTPUT_NAME _core SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY ${multicast_wheel}
  C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden
  # The library is in the same folder as the extension.
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")

# The wheel's platform tag names the oldest supported glibc (see OldGlibc.cmake) or musl; a wheel
# whose tag names neither is only for this machine's libc.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_QUIET ON)
check_c_source_compiles("#include <features.h>
  #ifdef __GLIBC__
  #error
  #endif
  int main(void) { return 0; }" multicast_is_musl)
unset(CMAKE_REQUIRED_QUIET)
set(multicast_wheel_platform linux_${CMAKE_SYSTEM_PROCESSOR})
if(multicast_is_musl)
  set(multicast_wheel_platform musllinux_1_2_${CMAKE_SYSTEM_PROCESSOR})
elseif(multicast_old_glibc AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  set(multicast_wheel_platform manylinux_2_17_${CMAKE_SYSTEM_PROCESSOR})
endif()
add_custom_target(wheel
  COMMAND ${CMAKE_OBJCOPY} --strip-all $<TARGET_FILE:multicast> ${multicast_wheel}/libmulticast.so.1
  COMMAND ${CMAKE_OBJCOPY} --strip-all $<TARGET_FILE:multicast_python>
    ${multicast_wheel}/_core.stripped.so
  COMMAND ${MULTICAST_PYTHON} -B ${PROJECT_SOURCE_DIR}/Sources/Python/wheel.py
    ${multicast_wheel}/libmulticast.so.1 ${multicast_wheel}/_core.stripped.so
    ${PROJECT_BINARY_DIR}/multicast-${PROJECT_VERSION}-cp39-abi3-${multicast_wheel_platform}.whl
  DEPENDS multicast multicast_python
  VERBATIM
  COMMENT "Making the wheel for Python")
