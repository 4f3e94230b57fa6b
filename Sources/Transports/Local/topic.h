/* A topic contains the peers that observe a name, and the retained values of the name. */

#ifndef MULTICAST_LOCAL_TOPIC_H
#define MULTICAST_LOCAL_TOPIC_H

#include "../Common/client.h"
#include "board.h"

#include <multicast_local.h>

/* A retained value, which is the last publication of an event and is kept for observers that
 * register later. */
typedef struct value {
  struct value *next;
  uint32_t event;
  size_t size;
  unsigned char payload[];
} value;

/* A list of topics that may have to be announced to peers, in order of their last change. */
typedef struct topic_list {
  struct topic *first, *last;
  size_t count;
} topic_list;

/* The field `subscription` of a known_name points to a topic. A name has separate topics for
 * notifications and for questions. */
typedef struct topic {
  const known_name *name;
  /* Protected by the lock. */
  places wanted_by; /* the peers that have observers of the name, or answer its questions */
  places offered_to; /* the unknown peers and the peers in `offering` that do not need the values */
  value *values;
  /* Only the client's thread uses these fields. */
  topic_list *list; /* the list that contains the topic, or NULL */
  struct topic *previous, *next;
  uint64_t listing; /* `listings` of the client when the topic was appended to the list */
  places told_to; /* the peers to which this client announced the name in its first announcement */
  names *all; /* the table that contains the name */
} topic;

/* These functions are called under the lock. */

topic *topic_find(const names *all, const char *name); /* returns NULL if there is none */
/* Finds or creates a topic. Returns NULL if there is no memory. */
topic *topic_make(names *all, const char *name);
void topic_drop(names *all, topic *t); /* frees the topic and its name if they are unused */
/* Returns the room that its values, other than `except`, need in the ring. */
size_t topic_kept(const topic *t, const value *except);
/* Returns the value of an event, or NULL. */
value *topic_value(const topic *t, uint32_t event);
value *value_make(uint32_t event, span payload); /* returns NULL if there is no memory */
void topic_keep(topic *t, value *v);             /* replaces the value of the same event */
void topics_free(const names *all);

/* Delivers the retained values of a name to its first observer in this process. Must not be called
 * under the lock. */
void local_give_kept(client *base, const char *name);

#endif
