/* The requests of libmulticast-nats to libnats, which tests can refuse. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include "../../Transports/Faults/requests.h"

#include <nats/nats.h>

enum {
  OPTIONS = FIRST_OF_LIBRARY,
  OPTION, /* setting one option */
  STATISTICS,
  CONNECTION,
  PUBLICATION,
  SUBSCRIPTION,
  LIMITS,
  COMPLETION,
  CANCELLATION,
  PENDING,
  COUNTS,
  URL,
  QUESTION
};

/* ---- For tests ------------------------------------------------------------------------------- */

/* Sets the status that refused requests return. The default is NATS_NO_MEMORY. */
void refuse_with(natsStatus status);

/* Makes libnats's thread wait when it calls the library's callback for arriving messages. */
void hold_messages(void);
bool is_message_held(void);
void let_messages_go(void);

/* ---- For the library: see replace.h ---------------------------------------------------------- */

bool refuses(int kind);
natsStatus what_libnats_says(void);
natsStatus ask_options(natsOptions **out);
void give_back_options(natsOptions *options);
natsStatus ask_statistics(natsStatistics **out);
void give_back_statistics(natsStatistics *statistics);
natsStatus ask_connection(natsConnection **out, natsOptions *options);
void give_back_connection(natsConnection *connection);
natsStatus ask_subscription(natsSubscription **out, natsConnection *connection,
                            const char *subject, natsMsgHandler handler, void *closure);
void give_back_subscription(natsSubscription *subscription);
int look_at_message(const natsMsg *message);

#endif
