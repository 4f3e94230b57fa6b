/* Shared by the files of libmulticast-nats. README.md describes them. */

#ifndef MULTICAST_NATS_NATS_H
#define MULTICAST_NATS_NATS_H

#include "../Common/client.h"

#include <multicast_nats.h>

/* As nats/nats.h declares them. */
struct __natsConnection;
struct __natsOptions;
struct __natsStatistics;
struct __natsSubscription;

/* ---- Subjects -------------------------------------------------------------------------------- */

extern const coding subject_coding, question_coding;
bool subject_is_prefix(const char *prefix);
/* Where the answer to a question goes; `subject` has ADDRESS_MAX_SIZE bytes. */
void subject_write_return(char *subject, origin to);
bool subject_read_return(const char *subject, origin *to); /* false: it is none of this library */

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  REASON_SIZE = 512,
  /* So many different texts of refusals are kept until they are told. */
  REFUSALS_MAX = 1024
};

/* What the server does not permit, so often one after the other. */
typedef struct refusal {
  struct refusal *next;
  multicast_nats_state state;
  uint64_t count;
  char text[];
} refusal;

typedef struct nats_client {
  client base; /* a name has a natsSubscription, which only the thread uses */

  /* Not changed after the thread has begun. */
  multicast_nats_options options; /* its texts are in `texts` */
  texts texts;
  struct __natsOptions *how;      /* the same for libnats */

  /* Held while libnats reads. What has come is handled after that, at one go: otherwise libnats
   * would wake its thread for each message. */
  pthread_mutex_t gate;
  bool is_reading; /* atomic: whether to look at the gate */

  /* Under the lock. */
  bool has_to_write;                   /* libnats has bytes for the socket */
  struct __natsConnection *connection; /* NULL: none. Only the thread sets it */
  unsigned flushes;                    /* calls that use the connection now */
  uint64_t handed;                     /* the ticket of the last one that libnats has had */
  uint64_t sending_first;              /* that of the first one that is being written */
  uint64_t told; /* so many changes of names libnats has had on this connection */
  uint64_t confirmed, confirmed_changes; /* what the server has answered after */
  refusal *refusals, *last_refusal;      /* to be told */
  unsigned refusal_count;

  /* Only the thread uses these. */
  int socket;
  bool has_ended;        /* the connection */
  const char *end_reason; /* NULL: libnats knows it */
  uint64_t heard_at, asked_at;
  struct __natsStatistics *counts; /* of the connection */
  uint64_t handed_before;          /* `received` when this connection began */
  uint64_t counted_at;
} nats_client;

/* Releases it on a thread of libnats. All transports share that: `release` runs on another one. */
void client_release_elsewhere(nats_client *c);

/* The thread. */
bool session_run(client *c);
void session_end(client *c);
int session_set_callbacks(nats_client *c); /* of `how`; a natsStatus */

#endif
