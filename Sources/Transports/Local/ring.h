/* The own ring: publishing. */

#ifndef MULTICAST_LOCAL_RING_H
#define MULTICAST_LOCAL_RING_H

#include "local.h"

/* The parts of an entry. */
typedef struct letter {
  entry_kind kind;
  const char *name; /* not NULL */
  uint32_t event;
  span payload;
  uint64_t number; /* of the question */
} letter;

/* All under the lock. */
size_t letter_size(const letter *l);
/* False: a peer has yet to read what is there; it can drop that. */
bool ring_make_room(local_client *c, size_t bytes, bool may_drop);
/* The same, as `overflow` says. It may give the lock up, and waits until then at most. */
multicast_status ring_get_room(local_client *c, size_t bytes, uint64_t until);
void ring_write(local_client *c, const letter *l, const places *readers); /* needs room */
void ring_write_kept(local_client *c, const topic *t, const places *readers); /* topic_kept() */
void ring_show(local_client *c, const places *readers); /* what was written; wakes readers */
/* Reads how far a peer has read. */
void ring_look(local_client *c, peer *p);
/* A peer that holds up the ring, or has yet to read something before `position`; NULL: none. */
peer *ring_slowest(local_client *c, uint64_t position);
void ring_wait(local_client *c, bool is_waiting); /* readers say at once how far they are */

multicast_status local_publish(client *base, const char *name, uint32_t event, span payload);

#endif
