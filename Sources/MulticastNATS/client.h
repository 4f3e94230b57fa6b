/* What the files of libmulticast-nats share. README.md describes them. */

#ifndef MULTICAST_NATS_CLIENT_H
#define MULTICAST_NATS_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <multicast_nats.h>

#include <pthread.h>

/* As nats/nats.h declares them. */
struct __natsConnection;
struct __natsOptions;
struct __natsStatistics;
struct __natsSubscription;

/* ---- Subjects -------------------------------------------------------------------------------- */

enum {
  NAME_MAX_SIZE = 255,
  PREFIX_MAX_SIZE = 200,
  /* Prefix, '.', each byte of the name as %XX, '.', an event of ten digits, NUL. */
  SUBJECT_MAX_SIZE = PREFIX_MAX_SIZE + 1 + 3 * NAME_MAX_SIZE + 1 + 10 + 1
};

bool subject_is_prefix(const char *prefix);

/* Write the subject of an event, or the wildcard of all subjects of a name, with a NUL. They return
 * how many bytes that takes without the NUL; 0: not a name. `subject` has SUBJECT_MAX_SIZE bytes.
 */
size_t subject_write(char *subject, const char *prefix, const char *name, uint32_t event);
size_t subject_write_wildcard(char *subject, const char *prefix, const char *name);

/* Reads a subject. `name` has NAME_MAX_SIZE + 1 bytes. Returns the size of the name; 0: it is not a
 * subject of this library. */
size_t subject_read(const char *subject, const char *prefix, char *name, uint32_t *event);

/* ---- Publications ---------------------------------------------------------------------------- */

typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* counts publications, from 1 */
  size_t subject_size;
  size_t size; /* of the payload */
  char bytes[]; /* the subject, a NUL, the payload */
} publication;

/* ---- Names ----------------------------------------------------------------------------------- */

typedef struct known_name {
  const char *text; /* `bytes`; or, of one that is only searched for, any text */
  struct known_name *next_change;
  bool is_wanted;
  bool is_changed;                         /* is in the list of changes */
  struct __natsSubscription *subscription; /* only the thread uses it; NULL: none */
  char bytes[];
} known_name;

typedef struct name_tree {
  void *root;
  size_t wanted;
  known_name *first_change; /* what the server has to be told */
  known_name *last_change;
} name_tree;

/* Says whether a name has observers. False: out of memory. */
bool names_want(name_tree *tree, const char *text, bool is_wanted);
known_name *names_take_change(name_tree *tree);
void names_change_all(name_tree *tree);
void names_remove(name_tree *tree, known_name *name); /* not one in the list of changes */
void names_visit(name_tree *tree, void (*visit)(known_name *name, void *context), void *context);
void names_free(name_tree *tree);

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
  name_tree names;
  uint64_t changes;                     /* counts changes of names */
  uint64_t told;                        /* so many of them libnats has had on this connection */
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
/* How often this process was forked from another one. A function of a caller may fork. So what
 * calls one compares this before and after, and in the child uses the client no more: it may be
 * freed. */
unsigned process_forks(void);
void client_retain(client *c);
void client_release(client *c);
/* The same on a thread of libnats. All transports share it: `release` runs on another one. */
void client_release_elsewhere(client *c);
void client_wake(client *c); /* under the lock */

/* The thread. */
void *session_thread(void *c);
int session_set_callbacks(client *c); /* of `how`; a natsStatus */

uint64_t now_ns(void);

#endif
