/* The questions that this process asks. */

#ifndef MULTICAST_LOCAL_QUESTION_H
#define MULTICAST_LOCAL_QUESTION_H

#include "local.h"

/* Called on the client's thread when an answer has arrived. `payload` is in the client's buffer. */
void question_answered(local_client *c, const peer *p, uint64_t number, multicast_status status,
                       span payload);
/* Called on the client's thread when a peer has ended and all its entries have been read. */
void questions_end(local_client *c, const peer *p);

/* The engine's functions `ask`, `next` and `forget`. */
inquiry *question_ask(client *base, const query *q, multicast_status *status);
told *question_next(client *c, inquiry *base, uint64_t deadline, multicast_status *status);
void question_forget(client *c, inquiry *base);

#endif
