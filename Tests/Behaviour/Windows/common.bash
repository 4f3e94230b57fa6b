# Functions that the tests of the preview for Windows share. The scripts source this file.
# shellcheck shell=bash

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../../.." && pwd)
# shellcheck source=Tests/packages.bash
. "$source/Tests/packages.bash"

step() { echo "== $*"; }
fail() { echo "$*" >&2; exit 1; }

# quietly COMMAND ...: prints the output only if the command fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }; }

# use_compilers SWIFTC: sets $swiftc, and $clang to the clang of SWIFTC's toolchain, or to Debian's
# if SWIFTC is OFF.
use_compilers() {
  swiftc=$1
  need_packages cmake ninja-build gcc gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64
  if [ "$swiftc" = OFF ]; then
    need_packages clang-19 lld-19
    clang=$(command -v clang-19)
  else
    clang=$(dirname "$(realpath "$swiftc")")/clang
  fi
}

# build_library: installs the library in $work/installed. Without Swift, builds it from the assembly
# of an archive. Archives contain no toolchain file, so the options are those in CONTRIBUTING.md.
build_library() {
  local options=(
    -DCMAKE_TOOLCHAIN_FILE="$source/Tests/Languages/Interop/cmake/cross/x86_64-w64-mingw32.cmake")
  [ "$swiftc" != OFF ] || options=(-DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER="$clang"
    -DCMAKE_C_COMPILER_TARGET=x86_64-w64-mingw32 -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld)
  quietly cmake -S "$source" -B "$work/library" -G Ninja -DCMAKE_C_FLAGS=-Werror \
    -DMULTICAST_SWIFTC="$swiftc" "${options[@]}"
  [ "$swiftc" != OFF ] || grep -F 'Without Swift: the core is assembly/x86_64-windows.s' "$work/log" ||
    fail "the library is not built from the assembly for Windows"
  quietly cmake --build "$work/library"
  quietly cmake --install "$work/library" --prefix "$work/installed"
}

# build_programs SOURCE ...: builds programs with the installed package and Debian's gcc, in
# $work/programs.
build_programs() {
  local IFS=';'
  quietly cmake -S "$here" -B "$work/programs" -G Ninja -DCMAKE_SYSTEM_NAME=Windows \
    -DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc -DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++ \
    -DCMAKE_PREFIX_PATH="$work/installed" -DPROGRAMS="$*"
  quietly cmake --build "$work/programs"
}

# Extracts the program in the README, and its output.
readme_program() {
  awk '/^```c$/ { inside = !n++; next } /^```$/ { inside = 0 } inside' "$source/README.md" >"$work/door.c"
  awk '/^```text$/ { inside = !n++; next } /^```$/ { inside = 0 } inside' "$source/README.md" \
    >"$work/expected"
  [ -s "$work/door.c" ] && [ -s "$work/expected" ] || fail "README.md has no program"
}
