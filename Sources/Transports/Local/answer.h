/* Questions of peers. */

#ifndef MULTICAST_LOCAL_ANSWER_H
#define MULTICAST_LOCAL_ANSWER_H

#include "local.h"

/* On the thread that delivers, not under the lock. Negative: nobody answers here, which is told. */
int64_t local_answer(client *base, const char *name, uint32_t event, span payload, origin from);
/* Tells who has asked, if there is room, that there will be no answer. */
void answer_refuse(local_client *c, origin to, multicast_status why);
/* Not in the child of a fork, and not under the lock. */
void answerers_release(answerer *all);

/* The others are not sent. */
static inline bool is_status_of_answer(uint32_t status) {
  const multicast_status s = (multicast_status)status;
  return s == MULTICAST_OK || s == MULTICAST_ERROR_STATE || s == MULTICAST_ERROR_OUT_OF_MEMORY;
}

#endif
