/* Stores the names that have or once had observers, and the changes that have not been reported to
 * the broker yet. */

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
  uint64_t change;    /* number of the first change that has not been reported; 0: of the engine */
  /* The engine uses these fields, which are initially zero. */
  int state;
  void *subscription;
  struct known_name *next_subscribed;
  struct answerer *answerer; /* the program's function for questions of the name; may be NULL */
  char text[];
} known_name;

/* A hash table of names, and a list of names whose changes must be reported to the broker. */
typedef struct names {
  known_name **buckets;
  uint64_t sizes[5]; /* bit N is set if a text of N bytes is or was stored */
  size_t capacity;
  size_t count;
  size_t wanted;
  known_name *first_change, *last_change;
} names;

/* Sets whether a name has observers. `change` is the number of this change. Returns false if there
 * is no memory. */
bool names_want(names *all, const char *text, bool is_wanted, uint64_t change);
/* Returns whether the name has observers, an answerer, or a change that must be reported to the
 * broker. */
static inline bool name_is_used(const known_name *name) {
  return name->is_wanted || name->is_changed || name->answerer != NULL;
}

known_name *names_find(const names *all, const char *text); /* returns NULL if there is none */
known_name *names_add(names *all, const char *text);        /* returns NULL if out of memory */
void names_remove(names *all, known_name *name); /* the name must not be in the list of changes */
known_name *names_next(const names *all, const known_name *name); /* NULL gives the first one */

/* Returns whether a name begins with a prefix. */
bool names_begins_with(const char *name, const known_name *prefix);
/* Iterates over the prefixes with which a name begins, by size. Returns the prefix after `last`, or
 * the first one if `last` is NULL. Returns NULL if there are no more prefixes. The stored text of
 * each prefix is an asterisk followed by the prefix, so that no text is empty. */
const known_name *names_next_prefix(const names *prefixes, const known_name *last,
                                    const char *name);

void names_change(names *all, known_name *name); /* appends to the list of changes */
known_name *names_take_change(names *all);       /* there must be a change */
/* Removes unused names for which the engine has no state. Called without a connection. */
void names_forget(names *all);

void names_free(names *all);

#endif
