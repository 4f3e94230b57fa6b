/* The benchmark of a transport. clients.c in the transport's folder defines the clients. */

#ifndef MEASURE_H
#define MEASURE_H

#include <multicast.h>

#include <stdbool.h>

enum {
  SIZE = 64,            /* of a small payload */
  LARGE_SIZE = 1000000, /* of a large one */
  PINGS = 2000          /* the maximum of messages there and back */
};

/* A connection in one process. */
typedef struct client client;
struct client {
  int port;
  size_t size;           /* of each payload that it publishes */
  int number;            /* among the subscribers of the same name: 0, 1... */
  int subscribers;       /* how many clients subscribe to what it publishes */
  int kind;              /* the index in `kinds` of the benchmark */
  bool publishes_many;   /* as many as possible; otherwise it waits after each */
  const char *name;      /* the name to which it subscribes */
  void (*arrived)(client *c, const void *payload, size_t size);
  /* `create` sets these. */
  void (*publish)(client *c, const char *name, const void *payload);
  void (*flush)(client *c); /* after the last one of many; may be NULL */
  void *connection;
  multicast_broadcaster broadcaster;
};

/* `create` connects and subscribes, and returns when the server has done both. */
typedef struct contender {
  const char *label;
  void (*create)(client *c);
} contender;

typedef struct benchmark {
  contender bare, ours;
  const char *kinds[3]; /* the measured kinds, up to a NULL; printed before the label */
  int messages;         /* per measurement of a rate */
  int window;           /* the limit of messages not yet received; 0: no limit */
} benchmark;

extern const benchmark the_benchmark;

void fail(const char *what);
double now(void); /* in seconds */

/* Handles an answer, which contains the number of messages that have arrived there. */
void be_answered(client *c, const void *payload, size_t size);
int received_now(void); /* the last answer */

/* Sends a message "there" and waits for the answer, `pings` times. Prints the times. */
void measure_latency(client *c, int pings);

/* The clients of our libraries differ only in how they connect. */
multicast_broadcaster begin_ours(client *c);
void attach_ours(client *c, const multicast_transport *transport);

#endif
