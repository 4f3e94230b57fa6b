# For the scripts that check packages: what they all need. To be sourced.
# shellcheck shell=bash disable=SC2034  # for those that source it

# What the environment says of other builds is not for these.
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH DESTDIR MAKEFLAGS MAKELEVEL NINJA_STATUS \
  CMAKE_GENERATOR CMAKE_BUILD_TYPE CMAKE_PREFIX_PATH CMAKE_TOOLCHAIN_FILE CMAKE_INSTALL_PREFIX \
  PKG_CONFIG_PATH PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
export LC_ALL=C

cmake=${CMAKE:-cmake}
swiftc=${SWIFTC:-swiftc}
export CC=${CC:-cc} CXX=${CXX:-c++}
checkout=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd -P)

# A directory of the script's own, gone when it ends.
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

# Runs a command, and shows what it prints only if it fails.
quietly() {
  if ! "$@" >"$work/log" 2>&1; then
    cat -- "$work/log" >&2
    fail "$*"
  fi
}

# Runs a command that has to fail; what it prints is in $output.
refused() {
  if output=$("$@" 2>&1); then
    printf '%s\n' "$output" >&2
    fail "was to be refused, but was not: $*"
  fi
}

# says TEXT ...: each of them is in $output, wherever its lines are broken.
says() {
  local text flat
  flat=$(tr -s '[:space:]' ' ' <<<"$output")
  for text in "$@"; do
    [[ $flat == *"$text"* ]] || fail "was to say: $text
and says:
$output"
  done
}

# missing_packages TOOL PACKAGE [TOOL PACKAGE ...]: the packages of the tools that are not there.
missing_packages() {
  while (($# > 1)); do
    have "$1" || printf '%s\n' "$2"
    shift 2
  done
}

# need TOOL PACKAGE [TOOL PACKAGE ...]: installs what is missing, or ends the script as skipped.
need() {
  local packages
  mapfile -t packages < <(missing_packages "$@" | sort -u)
  ((${#packages[@]} > 0)) || return 0
  local advice="install with: sudo apt-get install ${packages[*]}"
  have apt-get || skip "${packages[*]}: missing, and there is no apt-get here"
  ((EUID == 0)) || skip "${packages[*]}: missing; $advice"

  step "Installing ${packages[*]}"
  # The TMPDIR of this script is not for the user that apt-get becomes.
  local install=(env -u TMPDIR apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600
    "${packages[@]}")
  export DEBIAN_FRONTEND=noninteractive
  if ! "${install[@]}" >"$work/apt.log" 2>&1; then
    { env -u TMPDIR apt-get update -qq && "${install[@]}"; } >>"$work/apt.log" 2>&1 || {
      cat -- "$work/apt.log"
      skip "${packages[*]}: apt-get could not install them; $advice"
    }
  fi
  hash -r
  [[ -z $(missing_packages "$@") ]] || fail "installed, but not on the PATH: $(missing_packages "$@")"
}

# prints EXPECTED PROGRAM [ARGUMENT ...]
prints() {
  local expected=$1 output
  shift
  output=$("$@") || fail "$*: exit code $?; it printed: $output"
  printf '%s: %s\n' "${1##*/}" "${output//$'\n'/ | }"
  [[ $output == "$expected" ]] || fail "$*: was to print: $expected"
}

# Whether a program loads libmulticast.so.1 when it starts.
is_shared() { readelf -d -- "$1" | grep -q 'NEEDED.*\[libmulticast\.so\.1\]'; }

# links_as shared|static PROGRAM
links_as() {
  case $1 in
    shared) is_shared "$2" || fail "$2 does not need libmulticast.so.1" ;;
    static) ! is_shared "$2" || fail "$2 needs libmulticast.so.1, and was to be static" ;;
  esac
}
