/* What the files of libmulticast-nats share. README.md describes them. */

#ifndef MULTICAST_NATS_CLIENT_H
#define MULTICAST_NATS_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <multicast_nats.h>

#include "../MulticastTransports/coding.h"
#include "../MulticastTransports/names.h"
#include "../MulticastTransports/process.h"
#include "../MulticastTransports/structs.h"

/* As nats/nats.h declares them. */
struct __natsConnection;
struct __natsOptions;
struct __natsStatistics;
struct __natsSubscription;

/* ---- Subjects -------------------------------------------------------------------------------- */

extern const coding subject_coding;
bool subject_is_prefix(const char *prefix);

/* ---- Publications ---------------------------------------------------------------------------- */

typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* counts publications, from 1 */
  size_t subject_size;
  size_t size; /* of the payload */
  char bytes[]; /* the subject, a NUL, the payload */
} publication;

/* ---- Arrivals -------------------------------------------------------------------------------- */

typedef struct arrival {
  struct arrival *next;
  size_t size;
  const char *name; /* behind the payload */
  uint32_t event;
  _Alignas(16) unsigned char payload[];
} arrival;

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  REASON_SIZE = 512,
  REFUSED_SUBSCRIPTION = 0,
  REFUSED_PUBLICATION = 1,
  REFUSALS = 2
};

typedef struct client {
  /* Not changed after the thread has begun. */
  multicast_nats_options options; /* its texts are copies */
  struct __natsOptions *how;      /* the same for libnats */
  multicast inbox;                /* its delegate delivers on the thread that runs the queue */
  pthread_t thread;
  int wakeup; /* eventfd */
  unsigned fork_count;

  int references; /* the transport's, the threads', the inbox's, libnats's, and of running calls */

  /* Under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_stopping;
  bool is_away; /* the thread is in a caller's function, or connects */
  bool is_done; /* the thread has ended */
  bool is_asleep;
  bool has_to_write;                    /* libnats has bytes for the socket */
  struct __natsConnection *connection;  /* NULL: none. Only the thread sets it */
  unsigned flushes;                     /* calls that use the connection now */
  publication *first, *last;            /* the outbox */
  uint64_t handed;                      /* the ticket of the last one that libnats has had */
  names names; /* with a natsSubscription, which only the thread uses */
  uint64_t told; /* so many changes of names libnats has had on this connection */
  uint64_t confirmed, confirmed_changes; /* what the server has answered after */
  arrival *first_arrival, *last_arrival;
  uint64_t arrived_bytes;               /* of those, and of the one that is delivered */
  char refusals[REFUSALS][REASON_SIZE]; /* what the server does not permit; empty, or to be told */
  multicast_nats_stats stats;

  /* Only the thread uses these. */
  int socket;
  bool has_ended;        /* the connection */
  const char *end_reason; /* NULL: libnats knows it */
  uint64_t connected_at, heard_at, asked_at;
  struct __natsStatistics *counts; /* of the connection */
  uint64_t handed_before;          /* `received` when this connection began */
  uint64_t counted_at;
} client;

/* Whether this is the child of a fork: the thread is not here, and the locks may be taken. */
bool client_is_in_child(const client *c);
void client_retain(client *c);
void client_release(client *c);
/* The same on a thread of libnats. All transports share it: `release` runs on another one. */
void client_release_elsewhere(client *c);
void client_wake(client *c); /* under the lock */

/* The thread. */
void *session_thread(void *c);
int session_set_callbacks(client *c); /* of `how`; a natsStatus */

#endif
