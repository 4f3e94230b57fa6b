# The common code of the scripts that check packages, all of which source this file.
# shellcheck shell=bash disable=SC2034  # the scripts that source this file use the variables

# Settings of other builds in the environment must not affect these tests.
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH DESTDIR MAKEFLAGS MAKELEVEL NINJA_STATUS \
  CMAKE_GENERATOR CMAKE_BUILD_TYPE CMAKE_PREFIX_PATH CMAKE_TOOLCHAIN_FILE CMAKE_INSTALL_PREFIX \
  PKG_CONFIG_PATH PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
export LC_ALL=C

cmake=${CMAKE:-cmake}
swiftc=${SWIFTC:-swiftc}
swiftc_for_the_library=OFF # for the archive of a release
[[ $swiftc = OFF ]] || swiftc_for_the_library=$(command -v "$swiftc")
export CC=${CC:-cc} CXX=${CXX:-c++}
checkout=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../../../.." && pwd -P)
version=$("$checkout/cmake/version")

# If the environment names a cache folder, the library is compiled only once in each configuration.
if [[ -n ${MULTICAST_SWIFTC_CACHE-} ]]; then
  export MULTICAST_SWIFTC_CACHE MULTICAST_SWIFTC_REAL=$swiftc_for_the_library
  swiftc_for_the_library=$checkout/Tests/Languages/Interop/cmake/swiftc
fi

# shellcheck source-path=SCRIPTDIR source=../../../packages.bash
. "$checkout/Tests/packages.bash"

# Create a temporary directory, which is removed when the script ends.
work=$(mktemp -d "${TMPDIR:-/tmp}/multicast-packages.XXXXXX")
mkdir -- "$work/tmp"
export TMPDIR=$work/tmp # swiftc and lintian leave files there
cleanup() { rm -rf -- "$work"; }
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '== %s\n' "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command, and shows its output only if it fails.
quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    cat -- "$work/log" >&2
    fail "$*"
  fi
}

# Runs a command that must fail, and stores its output in $output.
refused() {
  if output=$("$@" 2>&1); then
    printf '%s\n' "$output" >&2
    fail "was to be refused, but was not: $*"
  fi
}

# says TEXT ...: checks that $output contains each text. Ignores line breaks.
says() {
  local text flat
  flat=$(tr -s '[:space:]' ' ' <<<"$output")
  for text in "$@"; do
    [[ $flat == *"$text"* ]] || fail "was to say: $text
and says:
$output"
  done
}

# prints EXPECTED PROGRAM [ARGUMENT ...]: checks the output of a program.
prints() {
  local expected=$1 output
  shift
  output=$("$@") || fail "$*: exit code $?; it printed: $output"
  printf '%s: %s\n' "${1##*/}" "${output//$'\n'/ | }"
  [[ $output == "$expected" ]] || fail "$*: was to print: $expected"
}

# Returns whether a program loads libmulticast.so.1 when it starts.
is_shared() { readelf -d -- "$1" | grep -q 'NEEDED.*\[libmulticast\.so\.1\]'; }

# links_as shared|static PROGRAM: checks how the program is linked with the library.
links_as() {
  case $1 in
    shared) is_shared "$2" || fail "$2 does not need libmulticast.so.1" ;;
    static) ! is_shared "$2" || fail "$2 needs libmulticast.so.1, and was to be static" ;;
  esac
}
