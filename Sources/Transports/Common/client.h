/* The client of each engine begins with this one. It has a thread with a connection, and messages
 * that other threads hand to it. */

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

/* ---- What it has ----------------------------------------------------------------------------- */

typedef struct engine {
  const coding *coding, *questions; /* of notifications, and of questions */
  const char *thread_name;
  size_t size;         /* of the engine's own client */
  size_t options_size; /* of the engine's options, which begin with two words: size, flags */
  uint32_t flags;      /* all that there are */
  uint32_t default_payload, largest_payload;
  size_t most_names; /* that may have observers, or be answered; 0: no limit */
  /* Puts defaults into the options, and the settings out of them. False: they are not valid. */
  bool (*settle)(void *options, settings *s);
  bool (*start)(void); /* once in a process; false: the engine cannot be used */
  /* Copies the options, and makes all that the engine's client needs but its thread. */
  multicast_status (*prepare)(client *c, const void *options);
  /* On any thread, with a name, and a payload that is not too large. */
  multicast_status (*publish)(client *c, const char *name, uint32_t event, span payload);
  /* On the thread that delivers, not under the lock: calls the function of a name. */
  void (*answer)(const answerer *a, uint64_t handle, uint32_t event, span payload, origin from);
  /* The same: tells who has asked that there will be no answer. NULL: that cannot be told. */
  void (*refuse)(client *c, origin to, multicast_status why);
  /* On any thread: an answer. */
  multicast_status (*reply)(client *c, origin to, span payload);
  /* On any thread, under the lock, which they may give up: asks, and waits for what is to be told
   * next. NULL: `*status` says why, or there will be no more. */
  inquiry *(*ask)(client *c, const query *q, multicast_status *status);
  told *(*next)(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
  void (*forget)(client *c, inquiry *i); /* frees it */
  /* Where answers go. The size of the address. */
  size_t (*write_return)(const client *c, char *address, origin to);
  /* On any thread: the first observer of a name has come. NULL: that is all. */
  void (*observed)(client *c, const char *name);
  /* Of a publication. NULL: it has no header, and none is retained. */
  size_t (*write_header)(const client *c, unsigned char *header, span payload);
  bool (*retains)(const client *c, const char *name, uint32_t event); /* a caller's function */
  /* On the thread: one connection, to its end. Whether to try again at once. */
  bool (*run)(client *c);
  void (*end)(client *c); /* on the thread, when it ends */
  /* In the child of a fork, inside of it, whatever the thread was doing. NULL: nothing. */
  void (*in_child)(client *c);
  void (*free)(client *c); /* what the engine's own client has; also in the child of a fork */
} engine;

/* Those of the statistics that all engines have, but for `delivered` and those of the outbox. */
typedef struct counts {
  uint64_t connections, sending, sent, dropped, rejected, refused;
  uint64_t received, ignored, lost;
} counts;

/* A call that waits until all publications up to a ticket are over. */
typedef struct flushing {
  struct flushing *next;
  uint64_t ticket;
  bool has_lost; /* one of them was dropped */
} flushing;

struct client {
  /* Not changed after the thread has begun. */
  const engine *engine;
  settings settings; /* `release` is NULL while connecting may fail: the caller releases */
  multicast inbox;   /* its delegate delivers on the thread that runs the queue */
  drops *drops;      /* by that queue; NULL: there is none */
  uint64_t handle;   /* the transport's context */
  uint64_t id;       /* random: others know it by this */
  char return_address[ADDRESS_MAX_SIZE]; /* what is subscribed to get answers */
  /* That of the transport. Another transport may have the same number as its context. */
  multicast_status (*publish)(void *, const char *, uint32_t, const void *, size_t);
  pthread_t thread;
  int wakeup; /* eventfd */
  unsigned fork_count;

  int references; /* the transport's, the threads', the inbox's, the engine's, of running calls */

  /* Under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_stopping; /* also read without the lock */
  bool is_away; /* the thread delivers, is in `changed`, or waits for the system to connect */
  bool is_done; /* the thread has ended */
  bool is_asleep;
  bool may_publish; /* while it is asleep: it would send a publication */
  bool is_connected;
  bool has_questions; /* this connection can carry them */
  uint64_t largest; /* payload that the broker takes; 0: it has not said */
  blocks blocks; /* the memory of publications and arrivals of before */
  outbox outbox;
  names names;
  names answered; /* names whose questions are answered here; "": the answers that come */
  inquiries inquiries; /* what is asked here */
  flushing *flushing;
  arrivals arrivals;
  uint64_t arrived_bytes; /* of those, and of those that are delivered now */
  counts counts;

  /* Only the thread uses these. */
  uint64_t connected_at; /* 0: not in this try */
  unsigned failures;

  uint64_t delivered; /* of the statistics; atomic */
};

/* ---- Life ------------------------------------------------------------------------------------ */

/* Ends the thread. Waits for it, unless it is this one, or in a caller's function: that may wait
 * for this thread. */
void client_stop(client *c);

void client_retain(client *c);
void client_release(client *c);
bool client_drop(client *c); /* the same, but does not free: whether the caller is to */
void client_free(client *c);

/* Whether this is the child of a fork: the thread is not here, and the locks may be taken. */
bool client_is_in_child(const client *c);

/* ---- Names ----------------------------------------------------------------------------------- */

/* All under the lock, of both kinds of names. */
static inline uint64_t client_changes(const client *c) {
  return c->names.changes + c->answered.changes;
}
static inline names *client_changed(client *c) { /* that the broker has to be told of; NULL: none */
  if (c->names.first_change != NULL) return &c->names;
  return c->answered.first_change != NULL ? &c->answered : NULL;
}
/* names_want(), unless there are too many. */
multicast_status client_want(client *c, names *all, const char *name, bool is_wanted);
/* The subscription of a name. The size. */
size_t client_write_filter(const client *c, char *address, const names *all, const char *name);

/* ---- The thread ------------------------------------------------------------------------------ */

bool client_is_stopping(client *c);
void client_wake(client *c); /* under the lock */

/* To be called under the lock, which it gives up. Looks at the socket; without work, waits so long
 * for it or for client_wake(). */
void client_poll(client *c, struct pollfd *socket, bool has_work, int timeout_ms);

/* Frees the memory that is kept for messages. To be called in a pause. */
void client_free_blocks(client *c);

/* Under the lock. Waits for `changed`. False: the time is over. */
bool client_wait_until(client *c, uint64_t deadline);
/* The same, for what becomes of a question. */
void client_wait_for_answer(client *c, inquiry *i, uint64_t deadline);

/* While the thread is away, a release of the transport does not wait for it. False: that has been
 * called already, and no function of a caller may be called any more. */
bool client_go_away(client *c);
void client_come_back(client *c);

/* To be called after a function of a caller, with process_forks() of before. If that has forked,
 * this is the child: its only thread is this one, and the client and the connection are the
 * parent's. The thread ends. */
void client_end_in_child(unsigned forks);

/* Under the lock. Counts publications that were accepted and are not sent; the first one has this
 * ticket. */
void client_drop_publications(client *c, uint64_t first, uint64_t count);

/* Calls `changed` of the options. */
void client_tell(client *c, uint32_t state, int32_t code, const char *reason);

#endif
