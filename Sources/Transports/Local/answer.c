/* Sends answers to the questions of peers. */

#include "answer.h"

#include "../Common/transport.h"
#include "ring.h"

/* Called under the lock. Returns the peer that asked the question, or NULL if that peer no longer
 * exists. Also checks `is_met`, because the number comes from the program and may be invalid. */
static peer *asker(const local_client *c, uint64_t number) {
  peer *p = c->peers;
  while (p != NULL && (p->number != number || !p->is_met || p->is_over)) p = p->next;
  return p;
}

/* Called under the lock. May release the lock while it waits for room in the ring. */
static multicast_status send_answer(local_client *c, origin to, multicast_status status,
                                    span payload, uint64_t until) {
  const letter l = {ENTRY_ANSWER, "", (uint32_t)status, payload, to.number};
  places only = {{0, 0}};
  multicast_status result;
  const peer *p;
  if (asker(c, to.peer) == NULL) return MULTICAST_ERROR_NOT_FOUND;
  result = ring_get_room(c, letter_size(&l), until);
  if (result != MULTICAST_OK) return result;
  p = asker(c, to.peer); /* may have gone while the lock was released */
  if (p == NULL) return MULTICAST_ERROR_NOT_FOUND;
  places_add(&only, p->place);
  ring_write(c, &l, &only);
  ring_show(c, &only);
  return MULTICAST_OK;
}

void answer_refuse(client *base, origin to, multicast_status why) {
  pthread_mutex_lock(&base->lock);
  /* A client that is stopping sends nothing, because the asker will notice that this peer has
   * ended. */
  if (!base->is_stopping) send_answer((local_client *)base, to, why, (span){NULL, 0}, 0);
  pthread_mutex_unlock(&base->lock);
}

multicast_status answer_reply(client *base, origin to, span payload) {
  local_client *c = (local_client *)base;
  multicast_status status = MULTICAST_ERROR_LIMIT;
  pthread_mutex_lock(&base->lock);
  if (payload.size <= c->options.max_payload)
    status = send_answer(c, to, MULTICAST_OK, payload, MULTICAST_FOREVER);
  pthread_mutex_unlock(&base->lock);
  return status;
}
