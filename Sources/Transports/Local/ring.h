/* Publishes to this client's own ring. */

#ifndef MULTICAST_LOCAL_RING_H
#define MULTICAST_LOCAL_RING_H

#include "local.h"

/* The contents of an entry. */
typedef struct letter {
  entry_kind kind;
  const char *name; /* not NULL */
  uint32_t event;
  span payload;
  uint64_t number; /* of the question */
} letter;

/* These functions are called under the lock. */

/* Returns the size of the entry. */
size_t letter_size(const letter *l);
/* Makes room for `bytes` bytes. Returns false if unread entries would have to be dropped and
 * `may_drop` is false. */
bool ring_make_room(local_client *c, size_t bytes, bool may_drop);
/* Makes room according to the option `overflow`. May wait until the time `until`, and releases the
 * lock while it waits. */
multicast_status ring_get_room(local_client *c, size_t bytes, uint64_t until);
/* Write entries: a letter, or all values of a topic except the value `except`. The caller must have
 * made room for letter_size() or topic_kept() bytes. */
void ring_write(local_client *c, const letter *l, const places *readers);
void ring_write_kept(local_client *c, const topic *t, const value *except, const places *readers);
/* Publishes the new head, and wakes readers. */
void ring_show(local_client *c, const places *readers);
/* Reads the tail of a peer. */
void ring_look(local_client *c, peer *p);
/* Returns the peer with the oldest unread entry before `position`, or NULL if there is none. */
peer *ring_slowest(local_client *c, uint64_t position);
/* Starts or ends a wait. During a wait, readers update their tails immediately. */
void ring_wait(local_client *c, bool is_waiting);

multicast_status local_publish(client *base, const char *name, uint32_t event, span payload);

#endif
