# Builds the library of a transport and its tests, and runs the tests. Tests/Processes/MQTT/run,
# Tests/Processes/NATS/run and Tests/Processes/Local/run set these variables and then source this
# file:
#   folder     the folder of the transport
#   server     the program that the tests start
#   clients    linker options for the client library
#   called     files of the transport that the tests also call directly
#   common     optional: files of Tests/Processes/Transports that are part of the tests
#   of_faults  optional: files of Tests/Processes/Transports that are part of the fault tests
# shellcheck shell=bash disable=SC2154

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=Tests/packages.bash
. "$root/Tests/packages.bash"

name=${folder,,}
[ -n "${of_faults+set}" ] || of_faults=("$root"/Tests/Processes/Transports/{Faults,Harness}/*.c)
[ -n "${common+set}" ] || common=("$root"/Tests/Processes/Transports/{,Harness/}*.c)
usage() {
  cat <<END
Usage: Tests/Processes/$folder/run LIBRARY BUILD_DIR [OPTION VALUE] [TEST ...]

Compiles libmulticast-$name and its tests, which are in this folder and in Tests/Processes/Transports, in
BUILD_DIR with LIBRARY, the path of libmulticast.so, and runs the tests whose names contain a TEST
(default: all).${server:+ A test that needs $server starts it on a free port of the loopback device.}
Missing packages are installed with apt-get when run as root; otherwise the script prints the command
that installs them and exits with status 77.

  --sanitize NAME  use this sanitizer, address or thread; LIBRARY must be built with it, too
  --coverage DIR   count, with gcov, the lines of the library that the tests reach. A build that an
                   earlier run left in DIR is used again, and its counts are added to
END
}

# read_arguments ARGUMENT ...: sets `library`, `build`, `sanitizer`, `counts` and `tests`, where
# `tests` contains the names of the tests to run.
read_arguments() {
  case ${1-} in -h | --help) usage; exit 0 ;; esac
  if [ $# -lt 2 ]; then
    usage >&2
    exit 2
  fi
  if ! [ -f "$1" ]; then
    echo "$1: no such library; to build it: cmake --build BUILD_DIR --target multicast" >&2
    exit 2
  fi
  library=$(realpath "$1") build=$2
  shift 2
  flags=(-O2) link_time=(-flto=auto) sanitizer="" counts=""
  if [ "${1-}" = --sanitize ]; then
    sanitizer=${2?$1 needs a name}
    flags=(-O1 -g "-fsanitize=$sanitizer") link_time=()
    shift 2
  elif [ "${1-}" = --coverage ]; then
    counts=${2?$1 needs a folder}
    flags=(-O0)
    shift 2
  fi
  tests=("$@")
  flags+=(-Wall -Wextra -Wpedantic -Werror -pthread -I"$root/include")
}

# Builds Sources/Transports/$folder and Tests/Processes/$folder.
build_tests() {
  mkdir -p "$build"
  build=$(realpath "$build")
  if [ -n "$counts" ]; then
    build_counting
    return
  fi
  build_library
  build_library_tests
  rm -rf "$build/faults" # may contain objects of deleted sources
  build_objects "$build/faults" "$folder" "$folder"
  build_objects "$build/faults" Transports Common
  build_fault_tests "$build"/faults/*.o
}

build_library() {
  gcc -std=c11 -shared -fPIC -fvisibility=hidden -Wshadow -Wconversion "${flags[@]}" \
    "${link_time[@]}" "$root"/Sources/Transports/{"$folder",Common,Common/*}/*.c "$library" \
    "${clients[@]}" \
    -Wl,--version-script="$root/cmake/multicast_$name.map" -Wl,-z,nodelete -Wl,-z,defs \
    -Wl,-soname,"libmulticast-$name.so.1" -o "$build/libmulticast-$name.so.1"
}

# Builds the tests that use the shared library in the same way as other programs.
build_library_tests() {
  gcc -std=gnu11 "${flags[@]}" -Wno-unused-parameter -I"$root/Tests/Processes/$folder" \
    "$root/Tests/Processes/$folder"/*.c "${common[@]}" "$root"/Tests/Behaviour/Interface/{harness,main}.c \
    "${called[@]/#/$root/Sources/Transports/}" \
    "$build/libmulticast-$name.so.1" "$library" "${clients[@]}" \
    "-Wl,-rpath,$build:$(dirname "$library")" -o "$build/${name}_tests"

  # The library must export exactly the functions that the header declares.
  diff <(sed -nE "s/^MULTICAST_API .*(multicast_${name}_[a-z_]+)\(.*/\1/p" \
    "$root/include/multicast_$name.h" | LC_ALL=C sort) \
    <(nm -D --defined-only "$build/libmulticast-$name.so.1" |
      awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort)
}

# build_objects DIR REPLACED SOURCES [FLAG ...]: compiles Sources/Transports/SOURCES, and redirects
# calls to libc to Tests/Processes/REPLACED/Faults, where tests can make them fail.
build_objects() {
  local dir=$1 replaced=$2 sources
  mapfile -t sources < <(find "$root/Sources/Transports/$3" -name '*.c')
  shift 3
  mkdir -p "$dir"
  (cd "$dir" && gcc -std=c11 -include "$root/Tests/Processes/$replaced/Faults/replace.h" "${flags[@]}" "$@" \
    -c "${sources[@]}")
}

# build_fault_tests OBJECT ...: builds the tests that are linked with the library's objects.
build_fault_tests() {
  gcc -std=gnu11 "${flags[@]}" -Wno-unused-parameter -I"$root/Tests/Processes/$folder" \
    "$root/Tests/Processes/$folder"/{Faults/*,broker}.c "${of_faults[@]}" \
    "$root"/Tests/Behaviour/Interface/{harness,main}.c "$@" "$library" "${clients[@]}" \
    "-Wl,-rpath,$(dirname "$library")" -o "$build/${name}_fault_tests"
}

# Builds all tests with the same objects, which count executed lines in the folder `counts`.
# Existing objects are not rebuilt, so that their counts keep accumulating. The objects of the
# common code are built once for all transports.
build_counting() {
  local of_all=$counts/Transports of_one=$counts/$folder count=(--coverage -fprofile-update=atomic)
  mkdir -p "$counts"
  {
    flock 9 # only one transport builds the shared objects
    [ -d "$of_all" ] || build_objects "$of_all" Transports Common "${count[@]}"
  } 9>"$counts/lock"
  [ -d "$of_one" ] || build_objects "$of_one" "$folder" "$folder" "${count[@]}"
  gcc "${flags[@]}" -c "$root/Tests/Proof/Coverage/end.c" -o "$build/end.o"
  flags+=(-D_exit=end_with_counts)
  build_fault_tests {"$of_all","$of_one"}/*.o "$build/end.o" -lgcov
  gcc -std=gnu11 "${flags[@]}" -Wno-unused-parameter -I"$root/Tests/Processes/$folder" \
    "$root/Tests/Processes/$folder"/*.c "${common[@]}" \
    "$root/Tests/Processes/$folder/Faults/requests.c" "$root/Tests/Processes/Transports/Faults/requests.c" \
    "$root"/Tests/Behaviour/Interface/{harness,main}.c {"$of_all","$of_one"}/*.o "$build/end.o" -lgcov \
    "$library" "${clients[@]}" "-Wl,-rpath,$(dirname "$library")" -o "$build/${name}_tests"
}

# Runs the programs that build_tests has built.
run_tests() {
  local program found="" status=0
  for program in "$build/${name}_tests" "$build/${name}_fault_tests"; do
    # If the caller has selected tests, skip a program that contains none of them.
    if [ ${#tests[@]} -gt 0 ] &&
      ! "$program" --list | grep -F -- "$(printf '%s\n' "${tests[@]}")" >/dev/null; then
      continue
    fi
    found=yes
    "$program" "${tests[@]}" || status=1
  done
  if [ -z "$found" ]; then
    echo "no test has a name with ${tests[*]}" >&2
    exit 1
  fi
  [ $status -eq 0 ] || exit 1
}

# block KIND: prints the first code block of kind KIND in the transport's README.md.
block() {
  awk -v kind="\`\`\`$1" '$0 == kind && !n { inside = n = 1; next } /^```$/ { inside = 0 } inside' \
    "$root/Sources/Transports/$folder/README.md"
}

# run_page ADDRESS HERE: compiles and runs the program in the transport's README.md with the
# commands in README.md, but with the address HERE instead of ADDRESS. Compares the
# output with the output in README.md.
run_page() {
  local page=$build/page
  mkdir -p "$page"
  block c >"$page/weather.c"
  block text >"$page/expected"
  block sh | sed -e "s|\$(pkg-config [^)]*)|\"\$@\"|" -e "s|$1|$2|" \
    -e 's/sleep 1/until grep -q observing output || ! kill -0 $!; do sleep 0.1; done/' \
    >"$page/commands"
  (cd "$page" && bash -eu commands -std=c99 "${flags[@]}" "$build/libmulticast-$name.so.1" \
    "$library" "-Wl,-rpath,$build:$(dirname "$library")" >output)
  diff "$page/expected" "$page/output"
  echo "the program on the page: as expected"
}
