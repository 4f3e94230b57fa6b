# Used if there is no swiftc. A release archive contains the core as assembly for each processor.
# Sets multicast_assembly to the file, or fails with a message.

set(multicast_assembly_dir ${PROJECT_SOURCE_DIR}/assembly)
if(NOT EXISTS ${multicast_assembly_dir})
  message(FATAL_ERROR
    "swiftc was not found, and there is no assembly of the core here.\n"
    "Without Swift, build from multicast-${PROJECT_VERSION}.tar.xz: it is beside the release, where "
    "this repository comes from, and has the assembly. (With Swift, the target `dist` makes it.)\n"
    "Or install Swift 6.3 or newer (https://www.swift.org/install/linux/) and put it on the PATH, "
    "or give -DMULTICAST_SWIFTC=/path/to/swiftc.")
endif()
foreach(option SANITIZE INTERNAL_CHECKS COVERAGE)
  if(MULTICAST_${option})
    message(FATAL_ERROR
      "MULTICAST_${option} compiles the core in another way, which needs swiftc, and that was not "
      "found. Install Swift 6.3 or newer: https://www.swift.org/install/linux/")
  endif()
endforeach()

include(CheckCSourceCompiles)
set(multicast_assembly)
foreach(processor x86_64 aarch64 riscv i386 arm)
  set(CMAKE_REQUIRED_QUIET ON)
  # The assembly for armv7 passes floating-point numbers in floating-point registers.
  check_c_source_compiles("#include <stdint.h>
    #if !defined __${processor} && !defined __${processor}__
    #error
    #elif defined __i386__ || (defined __ARM_PCS_VFP && __ARM_ARCH >= 7 && !defined __aarch64__)
    #elif UINTPTR_MAX < UINT64_MAX
    #error
    #endif
    int main(void) { return 0; }" multicast_is_${processor})
  unset(CMAKE_REQUIRED_QUIET)
  if(multicast_is_${processor})
    string(REGEX REPLACE "^riscv$" "riscv64" processor ${processor})
    string(REGEX REPLACE "^arm$" "armv7" processor ${processor})
    if(APPLE)
      string(APPEND processor -macos)
    endif()
    set(multicast_assembly ${multicast_assembly_dir}/${processor}.s)
    break()
  endif()
endforeach()
if(NOT multicast_assembly)
  message(FATAL_ERROR
    "swiftc was not found, and there is assembly for x86-64, arm64, riscv64, i386 and armv7 only, not "
    "for ${CMAKE_SYSTEM_PROCESSOR}. Install Swift 6.3 or newer: https://www.swift.org/install/linux/")
endif()
file(RELATIVE_PATH multicast_file ${PROJECT_SOURCE_DIR} ${multicast_assembly})
message(STATUS "Without Swift: the core is ${multicast_file}")
