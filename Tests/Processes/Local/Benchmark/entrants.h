/* The libraries that the benchmark of libmulticast-local compares. */

#ifndef ENTRANTS_H
#define ENTRANTS_H

#include "../../Transports/Benchmark/measure.h"

enum { SUBSCRIBERS_MAX = 16 };

typedef struct entrant {
  const contender *who;
  void (*prepare)(const client *publisher); /* called before other processes exist; may be NULL */
  int messages, large_messages; /* numbers of small messages per subscriber, and of 1 MB */
  int window, large_window;     /* limits of messages that are not yet received; 0: none */
} entrant;

extern const entrant by_local, by_sockets, by_zeromq;

/* The benchmarks of Tests/Processes/MQTT/Benchmark and Tests/Processes/NATS/Benchmark. */
extern const benchmark mqtt_benchmark, nats_benchmark;

#endif
