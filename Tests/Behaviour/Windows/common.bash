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

# build_library [OPTION ...]: installs the library in $work/installed.
build_library() {
  quietly cmake -S "$source" -B "$work/library" -G Ninja -DCMAKE_C_FLAGS=-Werror \
    -DCMAKE_TOOLCHAIN_FILE="$source/Tests/Languages/Interop/cmake/cross/x86_64-w64-mingw32.cmake" "$@"
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
