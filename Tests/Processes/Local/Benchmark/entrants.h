/* The libraries that the benchmark of libmulticast-local compares. */

#ifndef ENTRANTS_H
#define ENTRANTS_H

#include "../../Transports/Benchmark/measure.h"

enum { SUBSCRIBERS_MAX = 16 };

typedef struct entrant {
  const contender *who;
  void (*prepare)(const client *publisher); /* before there are other processes; may be NULL */
  int messages, large_messages; /* so many small ones to one subscriber, and of 1 MB */
  int window, large_window;     /* at most so many are on their way; 0: no limit */
} entrant;

extern const entrant by_local, by_sockets, by_zeromq;

/* Those of Tests/Processes/MQTT/Benchmark and Tests/Processes/NATS/Benchmark. */
extern const benchmark mqtt_benchmark, nats_benchmark;

#endif
