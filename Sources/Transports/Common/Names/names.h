/* The names that have observers, or had: what the broker is told of. */

#ifndef MULTICAST_TRANSPORTS_NAMES_H
#define MULTICAST_TRANSPORTS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct known_name {
  struct known_name *next;
  struct known_name *next_change;
  bool is_wanted;
  bool is_changed;    /* is in the list of changes */
  /* These are the engine's; zero at first. */
  int state;
  void *subscription;
  struct known_name *next_subscribed;
  struct answerer *answerer; /* of its questions; NULL: none here */
  char text[];
} known_name;

/* A hash table, and a list of those that the broker has to be told of. */
typedef struct names {
  known_name **buckets; /* a power of two of them */
  size_t capacity;
  size_t count;
  size_t wanted;
  uint64_t changes; /* counts the calls of names_want() */
  known_name *first_change, *last_change;
} names;

/* Says whether a name has observers. False: out of memory. */
bool names_want(names *all, const char *text, bool is_wanted);
/* Whether there are observers or one that answers, or the broker has to be told of a change. */
static inline bool name_is_used(const known_name *name) {
  return name->is_wanted || name->is_changed || name->answerer != NULL;
}

known_name *names_find(const names *all, const char *text); /* NULL: there is none */
known_name *names_add(names *all, const char *text);        /* NULL: out of memory */
void names_remove(names *all, known_name *name);            /* not one in the list of changes */
known_name *names_next(const names *all, const known_name *name); /* after NULL: the first one */

void names_change(names *all, known_name *name);
known_name *names_take_change(names *all); /* NULL: there is none */
/* Without a connection: removes those that nobody needs and that the engine does not know. */
void names_forget(names *all);

void names_free(names *all);

#endif
