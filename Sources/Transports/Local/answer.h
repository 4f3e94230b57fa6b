/* Sends answers to the questions of peers. */

#ifndef MULTICAST_LOCAL_ANSWER_H
#define MULTICAST_LOCAL_ANSWER_H

#include "local.h"

/* The engine's functions `refuse` and `reply`. answer_refuse() does nothing if the ring has no
 * room. */
void answer_refuse(client *base, origin to, multicast_status why);
multicast_status answer_reply(client *base, origin to, span payload);

/* Returns whether a peer's answer may contain `status`. */
static inline bool is_status_of_answer(uint32_t status) {
  const multicast_status s = (multicast_status)status;
  return s == MULTICAST_OK || s == MULTICAST_ERROR_STATE || s == MULTICAST_ERROR_OUT_OF_MEMORY;
}

#endif
