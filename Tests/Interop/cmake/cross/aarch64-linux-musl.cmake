# Zig's C compiler, from the package ziglang of PyPI, with its own musl. MULTICAST_ZIG, in the
# environment, is the program `zig`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER "$ENV{MULTICAST_ZIG}" cc -target aarch64-linux-musl)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
