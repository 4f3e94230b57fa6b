# Uses Zig's C compiler, from the package ziglang on PyPI. Zig can build only the archive of a
# release, because the Swift code of the core cannot be compiled with Zig's headers.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/aarch64-linux-musl-cc)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
