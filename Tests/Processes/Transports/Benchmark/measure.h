/* Declarations for the benchmark of a transport. clients.c in the transport's folder defines the
 * clients. */

#ifndef MEASURE_H
#define MEASURE_H

#include <multicast.h>

#include <stdbool.h>

enum {
  SIZE = 64,            /* of a small payload */
  LARGE_SIZE = 1000000, /* of a large payload */
  PINGS = 2000          /* the maximum number of round trips */
};

/* A client of the broker that is measured, with a connection of its own. */
typedef struct client client;
struct client {
  int port;
  size_t size;           /* of each payload that it publishes */
  int number;            /* index among the subscribers of the same name */
  int subscribers;       /* the number of clients that subscribe to its publications */
  int kind;              /* the index in `kinds` of the benchmark */
  bool publishes_many;   /* publishes as fast as possible; otherwise waits after each message */
  const char *name;      /* the name to which it subscribes */
  void (*arrived)(client *c, const void *payload, size_t size);
  /* `create` sets these. */
  void (*publish)(client *c, const char *name, const void *payload);
  void (*flush)(client *c); /* called after the last message; may be NULL */
  void *connection;
  multicast_broadcaster broadcaster;
};

/* A library that the benchmark measures. `create` connects and subscribes, and returns when the
 * server has processed both requests. */
typedef struct contender {
  const char *label;
  void (*create)(client *c);
} contender;

typedef struct benchmark {
  contender bare, ours;
  const char *kinds[3]; /* the measured kinds, up to a NULL; printed before the label */
  int messages;         /* per measurement of a rate */
  int window;           /* the maximum number of messages in flight; 0: no limit */
} benchmark;

extern const benchmark the_benchmark;

void fail(const char *what);
double now(void); /* in seconds */

/* Stores an answer, which is the number of messages that have arrived at the other process. */
void be_answered(client *c, const void *payload, size_t size);
int received_now(void); /* returns the last answer */

/* Sends a message to the name "there" and waits for the answer, `pings` times in total. Prints the
 * round-trip times. */
void measure_latency(client *c, int pings);

/* The code that all clients of our libraries share. These clients differ only in how they
 * connect. */
multicast_broadcaster begin_ours(client *c);
void attach_ours(client *c, const multicast_transport *transport);

#endif
