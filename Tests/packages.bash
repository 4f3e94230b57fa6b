# Functions that find and install the Debian packages that tests need. Scripts source this file.
# shellcheck shell=bash

is_installer() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

# ---- Finding packages ----------------------------------------------------------------------------

# finds_header HEADER [COMPILER OPTION ...]: returns whether the compiler finds the header (default:
# g++).
finds_header() {
  local header=$1
  shift
  [ $# -gt 0 ] || set -- g++ -x c++
  echo "#include <$header>" | "$@" -E -o /dev/null - >/dev/null 2>&1
}

# Returns whether dpkg has installed the package.
has_dpkg() {
  command -v dpkg-query >/dev/null &&
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# has_package PACKAGE: returns whether the part of the package that tests use is installed, with or
# without dpkg.
has_package() {
  case $1 in
    abigail-tools) command -v abidiff && command -v abidw ;;
    binutils) command -v objcopy ;;
    default-jdk-headless) javac -version && gcc --version ;;
    diffutils) command -v diff ;;
    dpkg-dev) command -v dpkg-shlibdeps ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc ;;
    guile-3.0) guile -c '(use-modules (system foreign-library))' ;;
    libbenchmark-dev) finds_header benchmark/benchmark.h ;;
    libboost-dev) finds_header boost/signals2.hpp ;;
    libc6-dev) finds_header stdint.h gcc -x c ;;
    libc6-dev-arm64-cross) finds_header stdio.h aarch64-linux-gnu-gcc -x c ;;
    libffi-platypus-perl) perl -MFFI::Platypus=1.00 -e 1 ;;
    mawk) command -v awk ;;
    man-db) command -v man ;;
    linux-perf) command -v perf ;;
    luajit) luajit -e 'require "ffi"' ;;
    mono-mcs) mcs --version ;;
    mono-runtime) mono --version ;;
    ninja-build) command -v ninja ;;
    php-cli) php -r 'exit(class_exists("FFI") ? 0 : 1);' ;;
    pkgconf | pkg-config) command -v pkg-config ;;
    python3 | python3-minimal) python3 -c 'import asyncio, ctypes' ;;
    python3-dev) python3 -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' ;;
    python3-matplotlib)
      python3 -c 'import matplotlib.pyplot' || /usr/bin/python3 -c 'import matplotlib.pyplot'
      ;;
    qemu-user) command -v qemu-aarch64 ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    ruby) ruby -r fiddle/import -e '' ;;
    rustc) rustc --version && cc --version ;;
    systemtap-sdt-dev) finds_header sys/sdt.h gcc -x c ;;
    valgrind) command -v valgrind && [ -e /usr/include/valgrind/callgrind.h ] ;;
    cmake | cppcheck | doxygen | file | gdb | g++ | gcc | gzip | hyperfine | lintian | make | perl | \
      pyflakes3 | shellcheck | spin) command -v "$1" ;;
    clang-tidy*) command -v "$1" ;;
    *) has_dpkg "$1" ;;
  esac >/dev/null 2>&1
}

# missing_packages PACKAGE ...: prints the packages that are missing, one per line.
missing_packages() {
  local package
  for package; do has_package "$package" || echo "$package"; done
}

# ---- Installing ----------------------------------------------------------------------------------

# install_packages PACKAGE ...: installs all packages in one call, or fails. apt-get runs without
# TMPDIR, because apt-get switches to another user, who may be unable to use this user's directory.
install_packages() {
  local install=(apt-get -qq -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@")
  echo "installing $*" >&2
  {
    flock 9 # one at a time, because apt-get fails while another updates the lists
    # Update the package lists only if installing with the current lists fails.
    DEBIAN_FRONTEND=noninteractive env -u TMPDIR "${install[@]}" >/dev/null 2>&1 9>&- ||
      { env -u TMPDIR apt-get -qq update >/dev/null 9>&- &&
        DEBIAN_FRONTEND=noninteractive env -u TMPDIR "${install[@]}" >/dev/null 9>&-; }
  } 9>/var/lock/multicast-packages
  hash -r
}

# require IS_THERE PACKAGE ...: if the command IS_THERE fails and this is root, installs the
# packages. For any other user, prints the command that installs them and ends the script with
# status 77, which makes ctest count the test as skipped.
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

# need_packages PACKAGE ...: like require, but only for missing packages.
need_packages() {
  local lacking
  mapfile -t lacking < <(missing_packages "$@")
  [ ${#lacking[@]} -gt 0 ] || return 0
  # shellcheck disable=SC2317 # require calls it
  are_there() { [ -z "$(missing_packages "${lacking[@]}")" ]; }
  require are_there "${lacking[@]}"
}

# need TOOL PACKAGE [TOOL PACKAGE ...]: like require, for the packages of the tools that are not on
# the PATH.
need() {
  local absent=() lacking=()
  while [ $# -gt 0 ]; do
    command -v "$1" >/dev/null || { absent+=("$1") && lacking+=("$2"); }
    shift 2
  done
  [ ${#absent[@]} -gt 0 ] || return 0
  # shellcheck disable=SC2317 # require calls it
  are_there() {
    local tool
    for tool in "${absent[@]}"; do command -v "$tool" || return 1; done
  }
  require are_there "${lacking[@]}"
}
