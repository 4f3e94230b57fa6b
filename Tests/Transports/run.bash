# Builds the library of a transport and its tests, and runs them. To be sourced by Tests/MQTT/run
# and by Tests/NATS/run, which have a function usage.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=Tests/packages.bash
. "$root/Tests/packages.bash"

# read_arguments ARGUMENT ...: sets `library`, `build`, `sanitizer`, and `tests`, their names.
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
  flags=(-O2) sanitizer=""
  if [ "${1-}" = --sanitize ]; then
    sanitizer=${2?$1 needs a name}
    flags=(-O1 -g "-fsanitize=$sanitizer")
    shift 2
  fi
  tests=("$@")
  flags+=(-Wall -Wextra -Wpedantic -Werror -pthread -I"$root/include")
}

# build_tests FOLDER CLIENT_LIBRARY CODING: what Sources/MulticastFOLDER and Tests/FOLDER make.
# CODING is a file of the library that tests call, too.
build_tests() {
  local folder=$1 client=$2 coding=$3 name=${1,,}
  local faults=$root/Tests/$folder/Faults sources=("$root"/Sources/Multicast{"$1",Transports}/*.c)
  local harness=("$root"/Tests/Interface/{harness,main}.c)
  mkdir -p "$build/faults"
  build=$(realpath "$build")
  gcc -std=c11 -shared -fPIC -fvisibility=hidden -Wshadow -Wconversion "${flags[@]}" \
    "${sources[@]}" "$library" "-l$client" \
    -Wl,--version-script="$root/cmake/multicast_$name.map" -Wl,-z,nodelete -Wl,-z,defs \
    -Wl,-soname,"libmulticast-$name.so.1" -o "$build/libmulticast-$name.so.1"
  gcc -std=gnu11 "${flags[@]}" -I"$root/Tests/$folder" "$root"/Tests/{"$folder",Transports}/*.c \
    "${harness[@]}" "$root"/Sources/Multicast{"$folder/$coding",Transports/coding.c} \
    "$build/libmulticast-$name.so.1" "$library" "-l$client" \
    "-Wl,-rpath,$build:$(dirname "$library")" -o "$build/${name}_tests"

  # The tests in Faults have the library's sources in them, with its requests replaced.
  (cd "$build/faults" &&
    gcc -std=c11 -include "$faults/replace.h" "${flags[@]}" -c "${sources[@]}")
  gcc -std=gnu11 "${flags[@]}" -I"$root/Tests/$folder" "$faults"/*.c \
    "$root/Tests/$folder/broker.c" "${harness[@]}" \
    "$root"/Tests/Transports/{Faults/{faults,requests},observers,peers,ports}.c \
    "$build"/faults/*.o "$library" "-l$client" \
    "-Wl,-rpath,$(dirname "$library")" -o "$build/${name}_fault_tests"

  # The library exports what the header declares, and nothing else.
  diff <(sed -nE "s/^MULTICAST_API .*(multicast_${name}_[a-z_]+)\(.*/\1/p" \
    "$root/include/multicast_$name.h" | LC_ALL=C sort) \
    <(nm -D --defined-only "$build/libmulticast-$name.so.1" |
      awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort)
}

# run_tests NAME: the programs of a transport.
run_tests() {
  local program found="" status=0
  for program in "$build/$1_tests" "$build/$1_fault_tests"; do
    # Where only some of the tests are to run, a program may have none of them.
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
