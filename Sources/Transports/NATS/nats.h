/* The declarations that the files of libmulticast-nats share. README.md describes the files. */

#ifndef MULTICAST_NATS_NATS_H
#define MULTICAST_NATS_NATS_H

#include "../Common/client.h"

#include <multicast_nats.h>

/* These types are declared as in nats/nats.h, which this header does not include. */
struct __natsConnection;
struct __natsOptions;
struct __natsStatistics;
struct __natsSubscription;

/* ---- Subjects -------------------------------------------------------------------------------- */

extern const coding subject_coding, question_coding;
bool subject_is_prefix(const char *prefix);
/* Writes the subject to which the answer to a question is sent. `subject` must have room for
 * ADDRESS_MAX_SIZE bytes. */
void subject_write_return(char *subject, origin to);
/* Decodes a subject that subject_write_return() has written. Returns false if the subject has
 * another form. */
bool subject_read_return(const char *subject, origin *to);

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  REASON_SIZE = 512,
  /* The largest number of different refusals that are stored until they are reported. */
  REFUSALS_MAX = 1024
};

/* A series of consecutive refusals by the server, all with the same text. */
typedef struct refusal {
  struct refusal *next;
  multicast_nats_state state;
  uint64_t count;
  char text[];
} refusal;

typedef struct nats_client {
  client base; /* in its names, `subscription` is a natsSubscription that only the thread uses */

  /* These fields do not change after the client's thread has started. */
  multicast_nats_options options; /* its strings are in `texts` */
  texts texts;
  struct __natsOptions *how;      /* the options of libnats */

  /* Locked while libnats reads. libnats's delivery thread waits for this lock, and then calls
   * on_message() for all messages that have been read. Without the lock, each message would wake
   * the delivery thread. */
  pthread_mutex_t gate;
  bool is_reading; /* atomic; whether the delivery thread waits for the gate */

  /* Protected by the lock. */
  void *all; /* the natsSubscription to all names, or NULL */
  bool has_to_write;                   /* libnats has unwritten bytes */
  struct __natsConnection *connection; /* may be NULL; set only by the thread */
  unsigned flushes;                    /* number of flushes that use the connection */
  uint64_t handed;                     /* ticket of the last publication passed to libnats */
  uint64_t sending_first;              /* ticket of the first publication in the current batch */
  uint64_t told; /* number of changes of names passed to libnats on this connection */
  uint64_t confirmed, confirmed_changes; /* last ticket and change that the server has confirmed */
  uint64_t unsure; /* last ticket on a connection that ended before it was confirmed; 0 if none */
  refusal *refusals, *last_refusal;      /* not reported yet */
  unsigned refusal_count;

  /* Only the client's thread uses these fields. */
  int socket;
  bool has_ended;         /* the connection has ended */
  const char *end_reason; /* NULL if libnats has the reason */
  uint64_t heard_at, asked_at;
  struct __natsStatistics *counts; /* of the connection */
  uint64_t handed_before;          /* `received` when this connection began */
  uint64_t counted_at;
} nats_client;

/* Called on one of libnats's threads. Drops a reference. If no references are left, frees the
 * client on a new thread, because `release` must not block a thread that all transports share. */
void client_release_elsewhere(nats_client *c);

/* The functions of the client's thread. */
bool session_run(client *c);
void session_end(client *c);
int session_set_callbacks(nats_client *c); /* sets them in `how`; returns a natsStatus */

#endif
