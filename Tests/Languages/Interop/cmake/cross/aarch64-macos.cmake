# Uses Zig's C compiler, from the package ziglang on PyPI. Tests/Languages/Builds/macos uses it.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_VERSION 20)  # of Darwin: macOS 11
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_OSX_DEPLOYMENT_TARGET 11.0)
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/aarch64-macos-cc)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
