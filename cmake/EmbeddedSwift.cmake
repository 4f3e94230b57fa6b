# Compiles a whole Swift module as Embedded Swift into one object, with any generator. CMake's own
# Swift support works only with Ninja and Xcode, and needs the ordinary runtime.

set(multicast_cmake_dir ${CMAKE_CURRENT_LIST_DIR})
include(${multicast_cmake_dir}/archive/Assembly.cmake)

# ---- For another machine --------------------------------------------------------------------------

set(MULTICAST_SWIFT_TARGET "" CACHE STRING
  "What to compile Swift for, as in swiftc -target (default: as the C compiler does)")
mark_as_advanced(MULTICAST_SWIFT_TARGET)

set(multicast_swift_target ${MULTICAST_SWIFT_TARGET})
if(APPLE)
  include(cmake/MacOS.cmake)
endif()
if(CMAKE_CROSSCOMPILING AND NOT multicast_swift_target AND NOT multicast_assembly)
  if(CMAKE_C_COMPILER_TARGET)
    # The targets of Swift's libraries for Linux always have the vendor "unknown".
    string(REPLACE "-pc-linux" "-unknown-linux" multicast_swift_target "${CMAKE_C_COMPILER_TARGET}")
  elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR)
    set(multicast_swift_target ${CMAKE_SYSTEM_PROCESSOR}-unknown-linux-gnu)
  else()
    message(FATAL_ERROR
      "Cross-compiling for CMAKE_SYSTEM_NAME '${CMAKE_SYSTEM_NAME}', CMAKE_SYSTEM_PROCESSOR "
      "'${CMAKE_SYSTEM_PROCESSOR}': say what that is for swiftc with -DMULTICAST_SWIFT_TARGET=, for "
      "instance aarch64-unknown-linux-gnu. (libmulticast runs on Linux.)")
  endif()
endif()

if(CMAKE_SIZEOF_VOID_P EQUAL 4 AND NOT multicast_swift_target AND NOT multicast_assembly)
  message(FATAL_ERROR
    "For a 32-bit processor libmulticast is cross-compiled, with CMAKE_TOOLCHAIN_FILE and "
    "MULTICAST_SWIFT_TARGET. CONTRIBUTING.md, 'Building', says how.")
endif()

# Fails with a message unless swiftc can compile for `target` with `flags`.
function(multicast_check_swift_target target flags)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/multicast-probe)
  file(WRITE ${probe}.swift "import Synchronization\n")
  execute_process(
    COMMAND ${MULTICAST_SWIFTC} ${flags} -c -wmo -parse-as-library
      -enable-experimental-feature Embedded ${probe}.swift -o ${probe}.o
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(STATUS "Swift is compiled for ${target}")
    return()
  endif()
  set(hint)
  if(output MATCHES "could not find module '([A-Za-z_]+)' for target[^;]*; found: ([^:]*), at: ([^\n]*)")
    set(missing "this Swift toolchain has no Embedded standard library for it (no module '${CMAKE_MATCH_1}')")
    string(REPLACE ", " ";" found "${CMAKE_MATCH_2}")
    list(SORT found)
    string(REGEX REPLACE "-.*" "" processor "${target}")
    foreach(bare none-none-elf unknown-none-elf none-none-eabi)
      if("${processor}-${bare}" IN_LIST found)
        set(hint
          "  * to try the bare-metal one for the same processor:\n"
          "    -DMULTICAST_SWIFT_TARGET=${processor}-${bare}\n")
        break()
      endif()
    endforeach()
    list(JOIN found "\n    " found)
    set(details "  It has one for:\n    ${found}")
  else()
    set(missing "swiftc cannot compile for it")
    set(details "  It says:\n${output}")
  endif()
  message(FATAL_ERROR
    "libmulticast cannot be built for the target '${target}': ${missing}.\n"
    "  swiftc: ${MULTICAST_SWIFTC}\n${details}\n"
    "What can be done:\n"
    "  * to build on a machine of that kind;\n"
    "  * to give another toolchain, with -DMULTICAST_SWIFTC=/path/to/swiftc;\n"
    "  * to build without Swift, with -DMULTICAST_SWIFTC=OFF: from multicast-${PROJECT_VERSION}.tar.xz;\n"
    ${hint}
    "  * to correct the name of the target, with -DMULTICAST_SWIFT_TARGET=.\n")
endfunction()

set(multicast_swift_target_flags)
if(multicast_swift_target AND NOT multicast_assembly)
  set(multicast_swift_target_flags -target ${multicast_swift_target} ${multicast_macos_swift_flags})
  if(multicast_swift_target MATCHES "^riscv64-none-")
    # Linux's ABI passes floating-point arguments in floating-point registers.
    list(APPEND multicast_swift_target_flags -Xcc -march=rv64gc -Xcc -mabi=lp64d)
  elseif(multicast_swift_target MATCHES "^i[3-6]86-")
    # Linux aligns the stack to 16 bytes at each call. The bare-metal target aligns it only to 4
    # bytes.
    list(APPEND multicast_swift_target_flags -Xcc -mstack-alignment=16 -Xcc -fomit-frame-pointer)
  elseif(multicast_swift_target MATCHES "^armv7-none-")
    list(APPEND multicast_swift_target_flags
      -Xcc -mfloat-abi=hard -Xcc -mfpu=vfpv3-d16 -Xcc -mtp=cp15)
  endif()
  multicast_check_swift_target(${multicast_swift_target} "${multicast_swift_target_flags}")
  # Use the C compiler's header directories, except those of its built-in headers.
  set(directories ${CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES})
  if(CMAKE_OSX_SYSROOT)
    set(directories)
  endif()
  foreach(directory IN LISTS directories)
    if(NOT directory MATCHES "/(gcc|gcc-cross|clang|ziglang/lib/include)(/|$)")
      list(APPEND multicast_swift_target_flags -Xcc -idirafter -Xcc ${directory})
    endif()
  endforeach()
endif()

# ---- Compiling ------------------------------------------------------------------------------------

# swiftc writes assembly, which the C compiler assembles. assembly.awk changes the assembly in
# between.
#
# multicast_add_embedded_swift_object(OBJECT MODULE name SOURCES ... INCLUDES ... DEPENDS ...
#                                     SANITIZE name COVERAGE bool DEFINES ... C_DEFINES ...
#                                     ALIGNED ... JUMPING ... PLACED name bytes)
function(multicast_add_embedded_swift_object object)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;SANITIZE;COVERAGE"
    "SOURCES;INCLUDES;DEPENDS;DEFINES;C_DEFINES;ALIGNED;JUMPING;PLACED")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "multicast_add_embedded_swift_object does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(multicast_assembly)
    multicast_add_assembled_object(${object} ${arg_MODULE})
    return()
  endif()
  multicast_get_assembler(assemble ${object})
  list(TRANSFORM arg_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)
  set(is_debug $<CONFIG:Debug,RelWithDebInfo>)
  set(sanitize)
  if(arg_SANITIZE)
    set(sanitize -sanitize=${arg_SANITIZE})
    set(is_debug 1)
  endif()
  set(coverage)
  if(arg_COVERAGE)
    set(coverage -profile-generate -profile-coverage-mapping -Xllvm -runtime-counter-relocation
      -Xllvm -instrprof-atomic-counter-update-all
      -Xcc -fprofile-instr-generate -Xcc -fcoverage-mapping)
  endif()
  # Keep frame pointers if the C compiler does, because bpftrace and perf --call-graph fp follow
  # only frame pointers.
  set(frame_pointers)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  if("${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${config}}" MATCHES "-fno-omit-frame-pointer")
    set(frame_pointers -Xcc -fno-omit-frame-pointer)
  endif()
  list(TRANSFORM arg_DEFINES PREPEND -D OUTPUT_VARIABLE defines)
  foreach(name ${arg_C_DEFINES})
    list(APPEND defines -Xcc -D${name})
  endforeach()
  # The code is optimized for size, except functions with the attribute @_optimize(speed), which
  # programs call often. Functions in ALIGNED begin at the start of a cache line, because a loop in
  # a bad position can take twice as long. Functions in JUMPING keep their tail calls as jumps,
  # because calls would take longer. The function in PLACED begins the given number of bytes after
  # the start of a cache line, so that its loop has a good position.
  list(JOIN arg_ALIGNED "|" aligned)
  list(JOIN arg_JUMPING "|" jumping)
  list(POP_FRONT arg_PLACED placed begin)
  get_filename_component(demangle ${MULTICAST_SWIFTC} REALPATH)
  get_filename_component(demangle ${demangle} DIRECTORY)
  string(APPEND demangle /swift-demangle)
  if(NOT EXISTS ${demangle})
    set(demangle)
  endif()
  set(script ${multicast_cmake_dir}/assembly.awk)
  if(APPLE)
    set(script ${multicast_cmake_dir}/assembly-macho.awk)
  endif()
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${MULTICAST_SWIFTC} ${multicast_swift_target_flags}
      -S -wmo -parse-as-library -swift-version 6
      -module-name ${arg_MODULE} -enable-experimental-feature Embedded
      -enforce-exclusivity=unchecked -Xfrontend -function-sections
      # The code never writes outside its stack frame, so it needs no stack protector.
      -Xfrontend -disable-stack-protector
      # Outlining would move code out of prologues on RISC-V and invalidate the unwinding tables.
      -Xllvm -enable-machine-outliner=never
      $<IF:$<CONFIG:Debug>,-Onone,-Osize> $<IF:${is_debug},-g,-gline-tables-only>
      "$<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-warnings-as-errors>"
      ${frame_pointers} ${sanitize} ${coverage} ${defines} ${includes} ${arg_SOURCES}
      -o ${object}.swiftc.s
    COMMAND awk -f ${script} -v aligned=${aligned} -v jumping=${jumping} -v placed=${placed}
      -v begin=${begin} -v debug=${is_debug} -v demangle=${demangle}
      ${object}.swiftc.s ${object}.swiftc.s > ${object}.s
    COMMAND ${assemble} ${object}.s
    COMMAND ${CMAKE_COMMAND} -E rm ${object}.swiftc.s
    DEPENDS ${arg_SOURCES} ${arg_DEPENDS} ${script}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling Embedded Swift module ${arg_MODULE}")
endfunction()
