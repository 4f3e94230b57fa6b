# Starts the servers of the benchmarks. The servers end when the script that sources this file ends.
# shellcheck shell=bash

become_mosquitto() { # PORT BUILD_DIR
  printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n' "$1" \
    >"$2/mosquitto.conf"
  echo 'max_queued_messages 0' >>"$2/mosquitto.conf"
  PATH=$PATH:/usr/sbin exec mosquitto -c "$2/mosquitto.conf"
}

become_nats() { # PORT
  PATH=$PATH:/usr/sbin exec nats-server -a 127.0.0.1 -p "$1"
}

is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# begin_server mosquitto|nats BUILD_DIR: starts a server and sets `port` to the server's port.
servers=()
trap '[ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null' EXIT
begin_server() {
  port=$((20000 + RANDOM % 10000))
  while is_open "$port"; do port=$((port + 1)); done
  ("become_$1" "$port" "$2") >"$2/$1.log" 2>&1 &
  servers+=($!)
  until is_open "$port"; do
    if ! kill -0 $! 2>/dev/null; then
      echo "the server has not started:" >&2
      cat "$2/$1.log" >&2
      exit 1
    fi
    sleep 0.1
  done
}
