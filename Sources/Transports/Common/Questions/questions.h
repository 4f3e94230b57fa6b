/* Questions: the functions that answer them here, and those that are asked here. */

#ifndef MULTICAST_TRANSPORTS_QUESTIONS_H
#define MULTICAST_TRANSPORTS_QUESTIONS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../Messages/arrivals.h"

#include <multicast.h>
#include <pthread.h>

/* Who answers the questions of a name. */
typedef struct answerer {
  int references;         /* the name's, and those of calls */
  void (*function)(void); /* as the engine's header declares it */
  void *context;
  void (*release)(void *context);
} answerer;

/* Not in the child of a fork, and not under a lock: releases the last one. NULL: nothing. */
void answerer_drop(answerer *a);

/* A question that is asked. */
typedef struct query {
  const char *name;
  uint32_t event;
  span payload;
  uint64_t deadline;
} query;

/* A call of `visit` to come. */
typedef struct told {
  struct told *next;
  multicast_status status;
  int32_t pid;
  const char *peer;
  void *payload; /* NULL: there are no bytes */
  size_t size;
} told;

typedef bool visitor(void *context, multicast_status status, int32_t pid, const char *peer,
                     const void *payload, size_t size);

/* A question that waits for answers. It has memory of its own: if a function of the caller ends the
 * thread, it stays here, with the reference to the client. An engine's own inquiry begins with this
 * one. */
typedef struct inquiry {
  struct inquiry *next;
  uint64_t number;
  pthread_cond_t changed; /* what its asker waits for */
  multicast_status end;   /* of one that a broker carries; MULTICAST_PENDING: answers may come */
  told *first, **last;    /* in the order in which it has come */
} inquiry;

/* All that wait for answers, by their numbers. */
#ifndef INQUIRY_LISTS
#define INQUIRY_LISTS 256
#endif
typedef struct inquiries {
  inquiry *lists[INQUIRY_LISTS];
  size_t count;
  uint64_t numbers; /* so many were given */
} inquiries;

/* With the next number. To be removed before its memory is freed. */
void inquiry_add(inquiries *all, inquiry *i);
void inquiry_remove(inquiries *all, inquiry *i);
inquiry *inquiry_find(const inquiries *all, uint64_t number); /* NULL: nobody waits for it */
inquiry *inquiry_next(const inquiries *all, const inquiry *i); /* after NULL: the first one */
void inquiries_wake(const inquiries *all);
/* These wake the asker, and nobody else. */
/* There will be no more answers to one that a broker carries. NULL: nothing. */
void inquiry_end(inquiry *i, multicast_status why);
void inquiry_tell(inquiry *i, told *t);
told *inquiry_take(inquiry *i); /* NULL: there is nothing to tell */

#endif
