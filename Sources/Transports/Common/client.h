/* The base of the client of each engine. A client has a thread, which owns the connection, and
 * lists of messages that other threads pass to it. */

#ifndef MULTICAST_TRANSPORTS_CLIENT_H
#define MULTICAST_TRANSPORTS_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "Messages/blocks.h"
#include "Messages/outbox.h"
#include "Names/coding.h"
#include "Names/names.h"
#include "Questions/questions.h"
#include "options.h"
#include "process.h"

#include <poll.h>

typedef struct client client;

/* ---- Engines and clients --------------------------------------------------------------------- */

typedef struct engine {
  const coding *coding, *questions; /* the encodings of notifications and of questions */
  const char *thread_name;
  size_t size;         /* of the engine's client */
  size_t options_size; /* of the engine's options, which begin with the words size and flags */
  uint32_t flags;      /* all valid flags */
  uint32_t default_payload, largest_payload;
  size_t most_names; /* limit of names with observers or answers; 0 for no limit */
  bool has_prefixes; /* the engine is notified of prefixes with observers */
  /* Sets defaults in the options, and converts them to settings. Returns false if they are not
   * valid. */
  bool (*settle)(void *options, settings *s);
  bool (*start)(void); /* called once per process; returns false if the engine cannot be used */
  /* Copies the options, and creates everything that the engine's client needs except its thread. */
  multicast_status (*prepare)(client *c, const void *options);
  /* Publishes. Called on any thread, with a valid name and payload size. */
  multicast_status (*publish)(client *c, const char *name, uint32_t event, span payload);
  /* Calls the function that answers a name. Called on the delivering thread, not under the lock. */
  void (*answer)(const answerer *a, uint64_t handle, uint32_t event, span payload, origin from);
  /* Tells the asker that there will be no answer. Called like `answer`. May be NULL. */
  void (*refuse)(client *c, origin to, multicast_status why);
  /* Sends an answer. Called on any thread. */
  multicast_status (*reply)(client *c, origin to, span payload);
  /* Ask a question, and wait for its next result. Called on any thread under the lock, which they
   * may release while they wait. If `ask` returns NULL, `*status` is the reason. If `next` returns
   * NULL, there are no more results, and `*status` is the result of the question. */
  inquiry *(*ask)(client *c, const query *q, multicast_status *status);
  told *(*next)(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
  void (*forget)(client *c, inquiry *i); /* frees the inquiry */
  /* Writes the address of answers. Returns its size. */
  size_t (*write_return)(const client *c, char *address, origin to);
  /* Called on any thread after a name has got its first observer. May be NULL. */
  void (*observed)(client *c, const char *name);
  /* Writes the header of a publication. If it is NULL, publications have no header. */
  size_t (*write_header)(const client *c, unsigned char *header, span payload);
  /* Returns whether a publication is retained; calls a caller's function. May be NULL. */
  bool (*retains)(const client *c, const char *name, uint32_t event);
  /* Runs one connection until it ends, on the thread. Returns whether to reconnect without
   * backoff. */
  bool (*run)(client *c);
  void (*end)(client *c); /* called on the thread, when it ends */
  /* Called in the child inside fork(), whatever the thread was doing. May be NULL. */
  void (*in_child)(client *c);
  void (*free)(client *c); /* frees the members of the engine's client; also in a child */
} engine;

/* The statistics that all engines have, except `delivered` and those of the outbox. */
typedef struct counts {
  uint64_t connections, sending, sent, dropped, rejected, refused;
  uint64_t received, ignored, lost;
} counts;

/* A call that waits until all publications up to a ticket have been sent or dropped. */
typedef struct flushing {
  struct flushing *next;
  uint64_t ticket;
  bool has_lost; /* a publication was dropped */
} flushing;

struct client {
  /* These do not change after the thread has started. */
  const engine *engine;
  settings settings; /* `release` is NULL until connecting has succeeded */
  multicast inbox;   /* its delegate delivers on the thread that runs the queue */
  drops *drops;      /* counts messages dropped by that queue; NULL without a queue */
  uint64_t handle;   /* the context of the transport */
  uint64_t id;       /* random; identifies this client for others */
  char return_address[ADDRESS_MAX_SIZE]; /* the subscription for answers */
  /* The transport's function. A transport of another library may have an equal context. */
  multicast_status (*publish)(void *, const char *, uint32_t, const void *, size_t);
  pthread_t thread;
  int wakeup; /* eventfd */
  unsigned fork_count;

  int references; /* of the transport, the threads, the inbox, the engine, and running calls */

  /* Protected by the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_stopping; /* also read without the lock */
  bool is_away; /* the thread delivers, is inside `changed`, or waits for the system to connect */
  bool is_done; /* the thread has ended */
  bool is_asleep;
  bool may_publish; /* a sleeping thread would send a publication if it were woken */
  bool is_connected;
  bool has_questions; /* this connection supports questions */
  uint64_t largest; /* payload that the broker accepts; 0 if it is unknown */
  blocks blocks; /* pool of memory for publications and arrivals */
  outbox outbox;
  names names;
  names answered; /* names whose questions are answered here; "" stands for the return address */
  names prefixes; /* prefixes with observers, each with an asterisk before it */
  inquiries inquiries; /* questions asked here */
  flushing *flushing;
  arrivals arrivals;
  uint64_t arrived_bytes; /* in the list, and of messages being delivered */
  counts counts;

  /* Used only by the thread. */
  uint64_t connected_at; /* 0 before this attempt has connected */
  unsigned failures;

  uint64_t delivered; /* a statistic; atomic */
};

/* ---- Lifetime -------------------------------------------------------------------------------- */

/* Stops the thread. Waits until it has ended, unless the caller is that thread, or the thread is in
 * a function of the program, which may itself be waiting for the caller. */
void client_stop(client *c);

void client_retain(client *c);
void client_release(client *c);
bool client_drop(client *c); /* releases; returns true if the caller must call client_free() */
void client_free(client *c);

/* Returns whether this is the child of a fork, where the client's thread does not exist and its
 * locks may be locked for good. */
bool client_is_in_child(const client *c);

/* ---- Names ----------------------------------------------------------------------------------- */

/* These functions are called under the lock, for both kinds of names. */
static inline uint64_t client_changes(const client *c) {
  return c->names.changes + c->answered.changes + c->prefixes.changes;
}
/* The names with changes that the broker has not been told, or NULL. */
static inline names *client_changed(client *c) {
  if (c->names.first_change != NULL) return &c->names;
  if (c->answered.first_change != NULL) return &c->answered;
  return c->prefixes.first_change != NULL ? &c->prefixes : NULL;
}
/* Calls names_want(), unless there are too many names. */
multicast_status client_want(client *c, names *all, const char *name, bool is_wanted);
/* Writes the subscription of a name. Returns its size. */
size_t client_write_filter(const client *c, char *address, const names *all, const char *name);

/* ---- The thread ------------------------------------------------------------------------------ */

bool client_is_stopping(client *c);
void client_wake(client *c); /* called under the lock */

/* Polls the socket. If there is no work, waits for it, for client_wake(), or for the timeout.
 * Called under the lock, and returns without it. */
void client_poll(client *c, struct pollfd *socket, bool has_work, int timeout_ms);

/* Frees the pool of memory for messages. Called when there is no traffic. */
void client_free_blocks(client *c);

/* Waits for `changed`, under the lock. Returns false at the deadline. */
bool client_wait_until(client *c, uint64_t deadline);
/* Waits for a change of a question, under the lock. */
void client_wait_for_answer(client *c, inquiry *i, uint64_t deadline);

/* Marks the thread as away, so that a release of the transport does not wait for it. Returns false
 * if the transport has been released; then no function of a caller may be called any more. */
bool client_go_away(client *c);
void client_come_back(client *c);

/* Called after a function of a caller, with the value that process_forks() had before it. If that
 * function has forked and this is the child, ends the thread, since the client and the connection
 * belong to the parent. */
void client_end_in_child(unsigned forks);

/* Counts accepted publications that will not be sent, beginning with the ticket `first`. Called
 * under the lock. */
void client_drop_publications(client *c, uint64_t first, uint64_t count);

/* Calls the function `changed` of the options. */
void client_tell(client *c, uint32_t state, int32_t code, const char *reason);

#endif
