/* The libraries that the benchmark of libmulticast-local compares. */

#ifndef ENTRANTS_H
#define ENTRANTS_H

#include "../../Transports/Benchmark/measure.h"

enum { SUBSCRIBERS_MAX = 16 };

typedef struct entrant {
  const contender *who;
  void (*prepare)(const client *publisher); /* called before other processes exist; may be NULL */
  int messages, large_messages; /* numbers of small and of 1 MB messages per subscriber */
  int window, large_window;     /* the maximum numbers of messages in flight; 0: no limit */
} entrant;

extern const entrant by_local, by_sockets, by_zeromq;

/* Tests/Processes/MQTT/Benchmark and Tests/Processes/NATS/Benchmark define these benchmarks. */
extern const benchmark mqtt_benchmark, nats_benchmark;

#endif
