# The preview for Windows on x86-64: multicast.dll, its import library, the headers and the CMake
# package. CMakeLists.txt includes this file in place of its other rules, most of which are for ELF.
# CONTRIBUTING.md, 'Windows (preview)', says how to build it.

set(MULTICAST_SYSTEM windows CACHE STRING "The functions of the system: windows")
if(NOT MULTICAST_SYSTEM STREQUAL windows)
  message(FATAL_ERROR "MULTICAST_SYSTEM is '${MULTICAST_SYSTEM}'; on Windows it may only be windows")
endif()
if(MULTICAST_SANITIZE OR MULTICAST_COVERAGE OR MULTICAST_INTERNAL_CHECKS)
  message(FATAL_ERROR "On Windows there are no sanitizers, no coverage and no internal checks.")
endif()
if(NOT CMAKE_C_COMPILER_ID STREQUAL Clang OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8 OR MSVC)
  message(FATAL_ERROR "The preview for Windows needs clang for MinGW on x86-64: CONTRIBUTING.md, "
    "'Windows (preview)', says how to build it.")
endif()
include(cmake/archive/Assembly.cmake)

# ---- The core -------------------------------------------------------------------------------------

set(multicast_shims_dir ${PROJECT_SOURCE_DIR}/Sources/MulticastShims)
set(multicast_swift_object ${PROJECT_BINARY_DIR}/multicast-swift.o)
if(multicast_assembly)
  multicast_add_assembled_object(${multicast_swift_object} Multicast)
else()
  # Swift's toolchains for Linux have no Embedded standard library for Windows. The one for bare
  # metal works if it is renamed. Its files also contain the target's name, and offsets that must
  # stay correct, so sed replaces the name with one of the same length. The target is Cygwin, not
  # MinGW, because the standard library treats `long` as a synonym of Int, but `long` has 32 bits in
  # MinGW.
  set(multicast_swift_target x86_64-unknown-windows-cygnus)
  set(multicast_modules ${PROJECT_BINARY_DIR}/multicast-modules)
  get_filename_component(directory ${MULTICAST_SWIFTC} REALPATH)
  get_filename_component(directory ${directory}/../../lib/swift/embedded ABSOLUTE)
  find_program(MULTICAST_SED sed REQUIRED NO_CMAKE_FIND_ROOT_PATH)
  mark_as_advanced(MULTICAST_SED)
  foreach(module Swift Synchronization _Volatile _Builtin_float)
    set(copy ${multicast_modules}/${module}.swiftmodule/${multicast_swift_target}.swiftmodule)
    file(MAKE_DIRECTORY ${multicast_modules}/${module}.swiftmodule)
    execute_process(
      COMMAND ${MULTICAST_SED} s/x86_64-unknown-none-elf/x86_64-u-windows-cygnus/g
        ${directory}/${module}.swiftmodule/x86_64-unknown-none-elf.swiftmodule
      OUTPUT_FILE ${copy} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${directory} has no module ${module} for x86_64-unknown-none-elf.")
    endif()
  endforeach()

  file(GLOB_RECURSE multicast_swift_sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/Sources/Multicast/*.swift)
  file(GLOB multicast_shims_headers CONFIGURE_DEPENDS
    ${multicast_shims_dir}/include/* ${multicast_shims_dir}/windows/core/*)
  multicast_get_assembler(assemble ${multicast_swift_object})
  add_custom_command(
    OUTPUT ${multicast_swift_object}
    COMMAND ${MULTICAST_SWIFTC} -emit-ir -wmo -parse-as-library -swift-version 6
      -module-name Multicast -target ${multicast_swift_target} -I ${multicast_modules}
      -enable-experimental-feature Embedded -enforce-exclusivity=unchecked
      -Xfrontend -function-sections -Xfrontend -disable-stack-protector
      -Xllvm -enable-machine-outliner=never
      $<IF:$<CONFIG:Debug>,-Onone,-Osize>
      "$<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-warnings-as-errors>"
      # Do not add -ffreestanding, which would prevent the functions of shims.h from being inlined.
      -Xcc -nostdlibinc -Xcc -isystem -Xcc ${multicast_shims_dir}/windows/core
      -Xcc -DMULTICAST_SYSTEM_WINDOWS
      -I ${PROJECT_SOURCE_DIR}/Sources/MulticastHeader -I ${multicast_shims_dir}/include
      ${multicast_swift_sources} -o ${multicast_swift_object}.cygwin.ll
    COMMAND awk -f ${PROJECT_SOURCE_DIR}/cmake/windows.awk
      ${multicast_swift_object}.cygwin.ll > ${multicast_swift_object}.ll
    COMMAND ${CMAKE_C_COMPILER} ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET}
      -x ir $<IF:$<CONFIG:Debug>,-O0,-O2> -ffunction-sections -S ${multicast_swift_object}.ll
      -o ${multicast_swift_object}.clang.s
    COMMAND awk -f ${PROJECT_SOURCE_DIR}/cmake/assembly-coff.awk
      ${multicast_swift_object}.clang.s > ${multicast_swift_object}.s
    COMMAND ${assemble} ${multicast_swift_object}.s
    DEPENDS ${multicast_swift_sources} ${PROJECT_SOURCE_DIR}/include/multicast.h
      ${multicast_shims_headers} ${PROJECT_SOURCE_DIR}/cmake/windows.awk
      ${PROJECT_SOURCE_DIR}/cmake/assembly-coff.awk
      ${PROJECT_SOURCE_DIR}/Sources/MulticastHeader/module.modulemap
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling Embedded Swift module Multicast for Windows")
endif()
add_custom_target(multicast_swift_object DEPENDS ${multicast_swift_object})

# ---- The library ----------------------------------------------------------------------------------

# MULTICAST_API precedes every exported function.
file(READ ${PROJECT_SOURCE_DIR}/include/multicast.h header)
string(REGEX MATCHALL "\nMULTICAST_API[^(]*\\(" exports "${header}")
list(TRANSFORM exports REPLACE ".*[ *\n](multicast_[a-z_0-9]+)\\($" "  \\1")
list(JOIN exports "\n" exports)
set(multicast_exports ${PROJECT_BINARY_DIR}/multicast.def)
file(CONFIGURE OUTPUT ${multicast_exports} CONTENT "LIBRARY multicast.dll\nEXPORTS\n${exports}\n")

# common/ also has files for POSIX, which are left out.
set(common probes status_texts storage write)
list(TRANSFORM common REPLACE "(.+)" "${multicast_shims_dir}/common/\\1.c")
file(GLOB windows CONFIGURE_DEPENDS ${multicast_shims_dir}/windows/*.c)
add_library(${multicast_shared} SHARED
  ${multicast_swift_object} ${common} ${windows} ${multicast_exports})
add_library(multicast::multicast_shared ALIAS ${multicast_shared})
add_library(multicast::multicast ALIAS ${multicast_shared})
add_dependencies(${multicast_shared} multicast_swift_object)
set_source_files_properties(${multicast_swift_object} PROPERTIES EXTERNAL_OBJECT ON)
target_compile_definitions(${multicast_shared} PRIVATE MULTICAST_SYSTEM_WINDOWS MULTICAST_PROBES=0
  _WIN32_WINNT=0x0602  # WaitOnAddress() exists since Windows 8
  $<$<NOT:$<BOOL:${MULTICAST_MEMBARRIER}>>:MULTICAST_WITHOUT_MEMBARRIER>)
target_compile_options(${multicast_shared} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Os> -Wall -Wextra
  -fms-extensions -fasynchronous-unwind-tables -ffunction-sections -fdata-sections -fno-lto)
target_include_directories(${multicast_shared} PRIVATE ${multicast_shims_dir}/include
  INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_options(${multicast_shared} PRIVATE LINKER:--gc-sections)
target_link_libraries(${multicast_shared} PRIVATE synchronization ntdll)
set_target_properties(${multicast_shared} PROPERTIES
  EXPORT_NAME multicast_shared OUTPUT_NAME multicast PREFIX "" LINKER_LANGUAGE C
  C_STANDARD 11 C_VISIBILITY_PRESET hidden INTERPROCEDURAL_OPTIMIZATION OFF)

# ---- The installation -----------------------------------------------------------------------------

if(MULTICAST_INSTALL)
  include(cmake/InstallPackage.cmake)
  set(multicast_config_dir lib/cmake/multicast)
  set(multicast_default_kind shared)
  install(TARGETS ${multicast_shared} EXPORT multicastSharedTargets
    RUNTIME DESTINATION bin COMPONENT multicast_runtime
    ARCHIVE DESTINATION lib COMPONENT multicast_development)
  install(EXPORT multicastSharedTargets NAMESPACE multicast::
    DESTINATION ${multicast_config_dir} COMPONENT multicast_development)
  multicast_install_package(include ${multicast_config_dir})
endif()
