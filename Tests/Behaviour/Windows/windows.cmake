# Builds the Windows preview with MinGW and runs it under Wine. Included by Tests/CMakeLists.txt.

set(windows_dir ${CMAKE_CURRENT_SOURCE_DIR}/Behaviour/Windows)
set(windows_packages cmake ninja-build gcc gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64)
set(windows_wine_packages python3 wine64)
add_check(windows_preview_build LABELS build TIMEOUT 900 COST 60 SETUP windows_preview
  PACKAGES ${windows_packages} mingw-w64-common
  COMMAND ${windows_dir}/build ${PROJECT_BINARY_DIR}/windows-preview ${MULTICAST_SWIFTC})
add_check(windows_preview_wine LABELS build TIMEOUT 900 COST 40 NEEDS windows_preview
  PACKAGES ${windows_packages} ${windows_wine_packages}
  COMMAND ${windows_dir}/wine ${PROJECT_BINARY_DIR}/windows-preview ${MULTICAST_SWIFTC})
add_check(windows_preview_harness LABELS release TIMEOUT 1800 COST 240 NEEDS windows_preview
  PACKAGES ${windows_packages} ${windows_wine_packages}
  COMMAND ${windows_dir}/wine --harness ${PROJECT_BINARY_DIR}/windows-preview ${MULTICAST_SWIFTC})
