# Runs the benchmark of a transport. Tests/Processes/MQTT/Benchmark/run and
# Tests/Processes/NATS/Benchmark/run set these variables and then source this file with their
# arguments:
#   here, sources   their folder; the folder of the library's sources and README.md
#   ours            the library
#   bare, link      the plain library that it uses; the options to link with that
#   default_rounds
#   packages        NAME=PACKAGE for each program that affects the figures, for the report
#   server          mosquitto or nats
# shellcheck shell=bash disable=SC2154

root=$(cd "$here/../../../.." && pwd)
folder=${here#"$root/"} sources=$root/$sources

usage() {
  cat <<END_OF_USAGE
Usage: $folder/run LIBRARY BUILD_DIR [ROUNDS] [--update-readme]

Builds $ours and the benchmark in BUILD_DIR with LIBRARY, the path of libmulticast.so, and
measures messages of 64 bytes between two processes, over a server that the script starts: round trips
of single messages, and throughput. Each of the ROUNDS (default: $default_rounds) prints a line for
each library. Compare only lines of the same round. Nothing else should run on the machine. At the end,
prints a table and draws the plot BUILD_DIR/benchmark.svg.

  --update-readme  write the table and the plot to ${sources#"$root/"}
  --from-results   measure nothing: make the table and the plot from earlier output

Missing packages are installed with apt-get when run as root; otherwise the script prints the command
that installs them and exits with status 77.
END_OF_USAGE
}
readme='' again='' arguments=()
for argument; do
  case $argument in
    -h | --help) usage; exit 0 ;;
    --update-readme) readme=yes ;;
    --from-results) again=yes ;;
    -*) usage >&2; exit 2 ;;
    *) arguments+=("$argument") ;;
  esac
done
if [ ${#arguments[@]} -lt 2 ] || [ ${#arguments[@]} -gt 3 ]; then
  usage >&2
  exit 2
fi
library=${arguments[0]} build=${arguments[1]} rounds=${arguments[2]-$default_rounds}
if ! [ -f "$library" ]; then
  echo "$library: no such library; to build it: cmake --build BUILD_DIR --target multicast" >&2
  exit 2
fi
library=$(realpath "$library")
mkdir -p "$build"
build=$(realpath "$build")
if [ -n "$again" ] && ! [ -s "$build/results.txt" ]; then
  echo "$build/results.txt: there are no results; leave --from-results out" >&2
  exit 2
fi

# shellcheck source=Tests/packages.bash
. "$root/Tests/packages.bash"
# shellcheck source=Tests/Processes/Transports/Benchmark/servers.bash
. "$root/Tests/Processes/Transports/Benchmark/servers.bash"
need_packages python3-matplotlib
# Debian's matplotlib needs Debian's Python, which may not be the first Python on the PATH.
python=python3
"$python" -c 'import matplotlib.pyplot' 2>/dev/null || python=/usr/bin/python3

# ---- Measuring -----------------------------------------------------------------------------------

if [ -z "$again" ]; then
  # Run one test, which also builds the library.
  if ! "$here/../run" "$library" "$build" addresses_are_read_back >"$build/log" 2>&1; then
    cat "$build/log"
    exit 1
  fi
  gcc -std=gnu11 -O2 -Wall -Wextra -Werror -I"$root/include" -I"$root/Tests/Processes/Transports/Benchmark" \
    "$root"/Tests/Processes/Transports/Benchmark/{common,measure}.c "$here/clients.c" "$build/$ours.so.1" \
    "$library" "$link" "-Wl,-rpath,$build:$(dirname "$library")" -o "$build/benchmark"

  begin_server "$server" "$build"
  "$build/benchmark" "$port" "$rounds" | tee "$build/results.txt"
fi

# ---- Reporting -----------------------------------------------------------------------------------

plot=$build/benchmark.svg options=()
if [ -n "$readme" ]; then
  plot=$sources/benchmark.svg
  options=(--update-readme "$sources/README.md")
fi
PYTHONDONTWRITEBYTECODE=1 "$python" "$root/Tests/Processes/Transports/Benchmark/report.py" \
  "$build/results.txt" "$plot" --ours "$ours" --bare "$bare" --packages "${packages[@]}" \
  "${options[@]}"
