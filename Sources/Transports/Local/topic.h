/* What a client knows about a name besides its own observers. */

#ifndef MULTICAST_LOCAL_TOPIC_H
#define MULTICAST_LOCAL_TOPIC_H

#include "../Common/client.h"
#include "board.h"

#include <multicast_local.h>

/* A retained value: the last publication of an event, for later observers. */
typedef struct value {
  struct value *next;
  uint32_t event;
  size_t size;
  unsigned char payload[];
} value;

/* The `subscription` of a known_name. A name with observers and the same name with questions have
 * separate topics. */
typedef struct topic {
  const known_name *name;
  /* Protected by the lock. */
  places wanted_by; /* the peers that have observers of the name, or answer its questions */
  places offered_to; /* peers without announced names, for which all values are in the ring */
  value *values;
  /* Used only by the thread: the list of all names that peers may have to be told, by last
   * change. */
  struct topic *previous, *next;
  uint64_t listing; /* `listings` of the client when the topic was appended */
  bool is_listed;
  names *all; /* the table that contains the name */
} topic;

/* These functions are called under the lock. */

topic *topic_find(const names *all, const char *name); /* returns NULL if there is none */
/* Finds or creates a topic. Returns NULL if there is no memory. */
topic *topic_make(names *all, const char *name);
void topic_drop(names *all, topic *t); /* frees the topic and its name if they are unused */
size_t topic_kept(const topic *t);     /* the room that its values need in the ring */
/* The value of an event, or NULL. */
value *topic_value(const topic *t, uint32_t event);
value *value_make(uint32_t event, span payload); /* returns NULL if there is no memory */
void topic_keep(topic *t, value *v);             /* replaces the value of the same event */
void topics_free(const names *all);

/* Delivers the retained values of a name to its first observer in this process. Not called under
 * the lock. */
void local_give_kept(client *base, const char *name);

#endif
