/* Questions of this process. */

#ifndef MULTICAST_LOCAL_QUESTION_H
#define MULTICAST_LOCAL_QUESTION_H

#include "local.h"

/* On the thread. An answer has come; its payload is in `payload` of the client. */
void question_answered(local_client *c, const peer *p, uint64_t number, multicast_status status,
                       span payload);
/* On the thread. The peer has ended, and all that it wrote is read. */
void questions_end(local_client *c, const peer *p);

/* As `engine` says. */
inquiry *question_ask(client *base, const query *q, multicast_status *status);
told *question_next(client *c, inquiry *base, uint64_t deadline, multicast_status *status);
void question_forget(client *c, inquiry *base);

#endif
