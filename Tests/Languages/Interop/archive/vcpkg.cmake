# Runs the vcpkg port without vcpkg, so that the port can be tested. This file defines
# vcpkg's functions as vcpkg's reference describes them, but only for release builds. vcpkg itself
# may have further requirements.
#
#   cmake -DPORT_FOLDER= -DVERSION= -DVCPKG_LIBRARY_LINKAGE= -DCURRENT_PACKAGES_DIR=
#     -DCURRENT_BUILDTREES_DIR= -P vcpkg.cmake

set(PORT multicast)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_download_distfile output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "URLS;FILENAME;SHA512" "")
  file(DOWNLOAD ${arg_URLS} ${CURRENT_BUILDTREES_DIR}/${arg_FILENAME} EXPECTED_HASH SHA512=${arg_SHA512})
  set(${output} ${CURRENT_BUILDTREES_DIR}/${arg_FILENAME} PARENT_SCOPE)
endfunction()

function(vcpkg_extract_source_archive output)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCHIVE" "")
  file(ARCHIVE_EXTRACT INPUT ${arg_ARCHIVE} DESTINATION ${CURRENT_BUILDTREES_DIR}/src)
  set(${output} ${CURRENT_BUILDTREES_DIR}/src/multicast-${VERSION} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  set(shared ON)
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    set(shared OFF)
  endif()
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR}/build
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=${shared}
    -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${CURRENT_BUILDTREES_DIR}/build --target install)
endfunction()

# Moves the CMake files one level up, to share/multicast, and adapts the prefix that they compute.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(GLOB files ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*)
  file(COPY ${files} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT})
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH})
  file(GLOB files ${CURRENT_PACKAGES_DIR}/share/${PORT}/*Targets.cmake)
  foreach(file ${files})
    file(READ ${file} text)
    set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/multicast.pc)
    message(FATAL_ERROR "there is no multicast.pc")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(COPY_FILE ${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright)
endfunction()

include(${PORT_FOLDER}/portfile.cmake)
