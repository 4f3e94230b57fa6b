# Debian's packages with what tests need. To be sourced.
# shellcheck shell=bash

is_installer() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

# install_packages PACKAGE ...: fails where they cannot be had.
install_packages() {
  local install=(apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@")
  echo "installing $*" >&2
  {
    flock 9 # while one updates the lists, another apt-get would fail
    # The lists are looked up afresh only where those that are there do not do. What TMPDIR says is
    # for this user, not for the one that apt-get becomes.
    DEBIAN_FRONTEND=noninteractive env -u TMPDIR "${install[@]}" >/dev/null 2>&1 9>&- ||
      { env -u TMPDIR apt-get -qq update >/dev/null 9>&- &&
        DEBIAN_FRONTEND=noninteractive env -u TMPDIR "${install[@]}" >/dev/null 9>&-; }
  } 9>/var/lock/multicast-packages
  hash -r
}

# require IS_THERE PACKAGE ...: where the command IS_THERE fails, installs the packages as root;
# otherwise says how to, and ends the script with 77, which ctest takes for skipped.
require() {
  local is_there=$1
  shift
  "$is_there" >/dev/null 2>&1 && return
  if ! is_installer; then
    echo "skipped: missing: $*; install with: sudo apt-get install $*"
    exit 77
  fi
  install_packages "$@" && "$is_there" >/dev/null 2>&1 && return
  echo "skipped: $* could not be installed with apt-get"
  exit 77
}

# need TOOL PACKAGE [TOOL PACKAGE ...]: likewise, for the tools that are not there.
need() {
  local absent=() missing=()
  while [ $# -gt 0 ]; do
    command -v "$1" >/dev/null || { absent+=("$1") && missing+=("$2"); }
    shift 2
  done
  [ ${#absent[@]} -gt 0 ] || return 0
  are_there() {
    local tool
    for tool in "${absent[@]}"; do command -v "$tool" || return 1; done
  }
  require are_there "${missing[@]}"
}
