/* The functions of this process that answer questions, and the questions that this process asks. */

#ifndef MULTICAST_TRANSPORTS_QUESTIONS_H
#define MULTICAST_TRANSPORTS_QUESTIONS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../Messages/arrivals.h"

#include <multicast.h>
#include <pthread.h>

/* A function that answers questions about a name. */
typedef struct answerer {
  int references;         /* held by the name and by each running call */
  void (*function)(void); /* has the type that the engine's header declares */
  void *context;
  void (*release)(void *context);
} answerer;

/* Drops a reference. Calls `release` and frees the answerer if no references are left. Must not be
 * called under a lock or in the child of a fork. Accepts NULL. */
void answerer_drop(answerer *a);

/* The arguments of a question. */
typedef struct query {
  const char *name;
  uint32_t event;
  span payload;
  uint64_t deadline;
} query;

/* The arguments of a pending call to the asker's function `visit`. */
typedef struct told {
  struct told *next;
  multicast_status status;
  int32_t pid;
  const char *peer;
  void *payload; /* NULL if the size is 0 */
  size_t size;
} told;

typedef bool visitor(void *context, multicast_status status, int32_t pid, const char *peer,
                     const void *payload, size_t size);

/* An inquiry is a question waiting for answers. Each engine has a larger struct that begins with an
 * `inquiry`. Inquiries are allocated on the heap instead of the asking thread's stack, because the
 * program's function `visit` may end the thread. If `visit` does so, the inquiry and its reference
 * to the client are never freed. */
typedef struct inquiry {
  struct inquiry *next;
  uint64_t number;
  pthread_cond_t changed; /* the asker waits for this */
  multicast_status end;   /* if a broker is used: the result, or MULTICAST_PENDING before the end */
  told *first, **last;    /* pending calls to `visit`, in order of arrival */
} inquiry;

/* A hash table of the questions waiting for answers. */
#ifndef INQUIRY_LISTS
#define INQUIRY_LISTS 256
#endif
typedef struct inquiries {
  inquiry *lists[INQUIRY_LISTS];
  size_t count;
  uint64_t numbers; /* the last number */
} inquiries;

/* Assigns the next number to a question, and adds the question to the table. The question must be
 * removed before it is freed. */
void inquiry_add(inquiries *all, inquiry *i);
void inquiry_remove(inquiries *all, inquiry *i);
inquiry *inquiry_find(const inquiries *all, uint64_t number);  /* returns NULL if there is none */
inquiry *inquiry_next(const inquiries *all, const inquiry *i); /* NULL gives the first one */
void inquiries_wake(const inquiries *all);
/* Ends a question sent through a broker, and wakes the asker. Accepts NULL. */
void inquiry_end(inquiry *i, multicast_status why);
/* Appends a pending call to `visit`, and wakes the asker. */
void inquiry_tell(inquiry *i, told *t);
told *inquiry_take(inquiry *i); /* removes the first one; returns NULL if there is none */

#endif
