/* A name beside its observers here. */

#ifndef MULTICAST_LOCAL_TOPIC_H
#define MULTICAST_LOCAL_TOPIC_H

#include "../Common/client.h"
#include "board.h"

#include <multicast_local.h>

/* The last publication of an event, for those who come late. */
typedef struct value {
  struct value *next;
  uint32_t event;
  size_t size;
  unsigned char payload[];
} value;

/* A name beside its observers here: the `subscription` of a known_name. A name
 * whose questions are answered has another one. */
typedef struct topic {
  const known_name *name;
  /* Under the lock. */
  places wanted_by; /* the peers that have observers of it, or answer its questions */
  places offered_to; /* peers that have yet to tell their names; the ring has all values for them */
  value *values;
  /* Only the thread uses these: names by their last change, all that peers may have to be told. */
  struct topic *previous, *next;
  uint64_t listing; /* counts the changes of the list */
  bool is_listed, is_of_questions;
} topic;

/* All under the lock. */
topic *topic_find(const names *all, const char *name); /* NULL: there is none */
topic *topic_make(names *all, const char *name);       /* finds it, too; NULL: no memory */
void topic_drop(names *all, topic *t);                 /* frees it and its name, if unused */
size_t topic_kept(const topic *t); /* the room that its values take in the ring */
/* The value of this event; NULL: there is none. */
value *topic_value(const topic *t, uint32_t event);
value *value_make(uint32_t event, span payload); /* NULL: no memory */
void topic_keep(topic *t, value *v);             /* in place of that of the same event */
void topics_free(const names *all);

/* Not under the lock. Delivers what is kept of a name to its first observer in this process. */
void local_give_kept(client *base, const char *name);

#endif
