/* The base of every engine's client. A client has one thread, which owns the connection. Other
 * threads pass messages to the client's thread through lists. */

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
  bool has_prefixes; /* the engine supports observers of prefixes */
  /* Replaces unset options with their defaults, and converts the options to settings. Returns false
   * if an option is not valid. */
  bool (*settle)(void *options, settings *s);
  bool (*start)(void); /* called once per process; returns false if the engine cannot be used */
  /* Copies the options, and creates all resources of the engine's client except its thread. */
  multicast_status (*prepare)(client *c, const void *options);
  /* Publishes a notification. Called on any thread, with a valid name and payload size. */
  multicast_status (*publish)(client *c, const char *name, uint32_t event, span payload);
  /* Passes a question to the program's answering function. Called on the thread that delivers
   * messages, without the lock. */
  void (*answer)(const answerer *a, uint64_t handle, uint32_t event, span payload, origin from);
  /* Tells the asker that there will be no answer. Called like `answer`. May be NULL. */
  void (*refuse)(client *c, origin to, multicast_status why);
  /* Sends an answer. Called on any thread. */
  multicast_status (*reply)(client *c, origin to, span payload);
  /* `ask` sends a question, and `next` waits for the question's next answer. Both functions are
   * called on any thread under the lock, and may release the lock while they wait. If `ask` returns
   * NULL, `*status` is the error. If `next` returns NULL, there are no more answers, and `*status`
   * is the result of the whole question. */
  inquiry *(*ask)(client *c, const query *q, multicast_status *status);
  told *(*next)(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
  void (*forget)(client *c, inquiry *i); /* frees the inquiry */
  /* Writes the address to which answers are sent. Returns its size. */
  size_t (*write_return)(const client *c, char *address, origin to);
  /* Called on any thread after the first observer of a name has registered. May be NULL. */
  void (*observed)(client *c, const char *name);
  /* Writes the header of a publication. If this function is NULL, publications have no header. */
  size_t (*write_header)(const client *c, unsigned char *header, span payload);
  /* Asks one of the program's functions whether to retain a publication. May be NULL. */
  bool (*retains)(const client *c, const char *name, uint32_t event);
  /* Connects and runs until the connection ends. Called on the client's thread. Returns whether to
   * reconnect immediately, without backoff. */
  bool (*run)(client *c);
  void (*end)(client *c); /* called on the thread, when it ends */
  /* Called once by fork() in the child, under process_lock(). May be NULL. */
  void (*in_child)(void);
  void (*free)(client *c); /* frees the members of the engine's client; also in a child */
} engine;

/* The statistics that all engines keep, except `delivered` and the outbox's statistics. */
typedef struct counts {
  uint64_t connections, sending, sent, dropped, rejected, refused;
  uint64_t received, ignored, lost;
} counts;

/* A call to flush, which waits until all publications up to a ticket have been sent or dropped. */
typedef struct flushing {
  struct flushing *next;
  uint64_t ticket;
  bool has_lost; /* a publication was dropped */
} flushing;

struct client {
  /* These fields do not change after the client's thread has started. */
  const engine *engine;
  settings settings; /* `release` is NULL until connecting has succeeded */
  multicast inbox;   /* its delegate delivers on the thread that runs the queue */
  drops *drops;      /* counts messages dropped by that queue; NULL without a queue */
  uint64_t handle;   /* the context of the transport */
  uint64_t id;       /* random; identifies this client for others */
  char return_address[ADDRESS_MAX_SIZE]; /* the subscription for answers */
  /* The transport's function `publish`. The library compares it to recognize its own transports,
   * because another library's transport may have the same context. */
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
  names answered; /* names with answerers; "" stands for the return address */
  names prefixes; /* prefixes with observers, each with an asterisk before it */
  uint64_t changes; /* number of calls to client_want() */
  inquiries inquiries; /* questions asked here */
  flushing *flushing;
  arrivals arrivals;
  uint64_t arrived_bytes; /* in the list, and of messages being delivered */
  counts counts;

  /* Only the client's thread uses these fields. */
  uint64_t connected_at; /* 0 before this attempt has connected */
  unsigned failures;

  uint64_t delivered; /* a statistic; atomic */
};

/* ---- Lifetime -------------------------------------------------------------------------------- */

/* Stops the client's thread, and waits until it has ended. Does not wait if the caller is that
 * thread. Does not wait either if the thread is running one of the program's functions, because
 * that function may be waiting for the caller. */
void client_stop(client *c);

void client_retain(client *c);
void client_release(client *c);
bool client_drop(client *c); /* releases; returns true if the caller must call client_free() */
void client_free(client *c);

/* Returns whether this process is a child of the process that created the client. In the child, the
 * client's thread does not exist, and the client's locks may stay locked forever. */
bool client_is_in_child(const client *c);

/* ---- Names ----------------------------------------------------------------------------------- */

/* These functions are called under the lock. They apply to names with observers, names with
 * answerers, and prefixes. */
static inline uint64_t client_changes(const client *c) {
  return c->changes;
}
/* Returns the table with the oldest change to report to the broker, or NULL if there is none.
 * Changes in one table therefore do not keep those in another table waiting. */
names *client_changed(client *c);
/* Numbers a change and calls names_want(), but fails if this would exceed the limit on names. */
multicast_status client_want(client *c, names *all, const char *name, bool is_wanted);
/* Writes the address pattern that a subscription to a name needs. Returns its size. */
size_t client_write_filter(const client *c, char *address, const names *all, const char *name);

/* ---- The thread ------------------------------------------------------------------------------ */

bool client_is_stopping(client *c);
void client_wake(client *c); /* called under the lock */

/* Polls the socket. If there is no work, waits until the socket is ready, client_wake() is called,
 * or the timeout expires. Called under the lock, which it releases. */
void client_poll(client *c, struct pollfd *socket, bool has_work, int timeout_ms);

/* Frees the pooled memory for messages. Called when there is no traffic. */
void client_free_blocks(client *c);

/* Waits until `changed` is signalled. Called under the lock. Returns false if the deadline has
 * passed. */
bool client_wait_until(client *c, uint64_t deadline);
/* Waits until a question's state changes. Called under the lock. */
void client_wait_for_answer(client *c, inquiry *i, uint64_t deadline);

/* Marks the client's thread as away, so that releasing the transport does not wait for the thread.
 * Returns false if the transport has been released. The thread must then not call the program's
 * functions any more. */
bool client_go_away(client *c);
void client_come_back(client *c);

/* Called after each call to one of the program's functions. `forks` is the result of
 * process_forks() before that call. If the function has called fork() and this process is the
 * child, ends the thread, because the client and the connection belong to the parent. */
void client_end_in_child(unsigned forks);

/* Records that `count` accepted publications have been dropped, starting at the ticket `first`.
 * Called under the lock. */
void client_drop_publications(client *c, uint64_t first, uint64_t count);

/* Reports a state to the program by calling the function `changed` in the options. */
void client_tell(client *c, uint32_t state, int32_t code, const char *reason);

#endif
