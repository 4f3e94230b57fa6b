# Finds swiftc. If there is none, sets multicast_assembly to the assembly of the core for the
# processor and the system, which the archive of a release contains, or fails with a message.

# multicast_get_assembler(VARIABLE OBJECT): sets the variable to the command that assembles the
# object. The caller appends the name of the assembly file.
function(multicast_get_assembler variable object)
  set(target)
  if(CMAKE_C_COMPILER_TARGET)
    set(target ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET})
  endif()
  if(CMAKE_OSX_ARCHITECTURES)
    list(APPEND target -arch ${CMAKE_OSX_ARCHITECTURES})
  endif()
  set(${variable} ${CMAKE_C_COMPILER} ${CMAKE_C_COMPILER_ARG1} ${target} -c -o ${object} PARENT_SCOPE)
endfunction()

# multicast_add_assembled_object(OBJECT MODULE): adds the rule that makes the object from
# multicast_assembly.
function(multicast_add_assembled_object object module)
  multicast_get_assembler(assemble ${object})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${assemble} ${multicast_assembly}
    DEPENDS ${multicast_assembly}
    VERBATIM
    COMMENT "Assembling module ${module}")
endfunction()

find_program(MULTICAST_SWIFTC swiftc NO_CMAKE_FIND_ROOT_PATH DOC "The Swift compiler, 6.3 or newer")
set(multicast_assembly)
if(MULTICAST_SWIFTC)
  return()
endif()

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
    elseif(WIN32)
      string(APPEND processor -windows)
    endif()
    set(multicast_assembly ${multicast_assembly_dir}/${processor}.s)
    break()
  endif()
endforeach()
if(NOT EXISTS "${multicast_assembly}")
  message(FATAL_ERROR
    "swiftc was not found, and there is assembly for x86-64, arm64, riscv64, i386 and armv7 only (for "
    "Windows x86-64), not for ${CMAKE_SYSTEM_PROCESSOR}. Install Swift 6.3 or newer: "
    "https://www.swift.org/install/linux/")
endif()
file(RELATIVE_PATH multicast_file ${PROJECT_SOURCE_DIR} ${multicast_assembly})
message(STATUS "Without Swift: the core is ${multicast_file}")
