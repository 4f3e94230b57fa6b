#include "requests.h"

#include "../../../Behaviour/Interface/harness.h"

/* ---- For tests ------------------------------------------------------------------------------- */

static natsStatus what_is_said = NATS_NO_MEMORY;

void refuse_with(natsStatus status) { STORE(what_is_said, status); }

static struct {
  bool is_on, is_held;
} hold;

void hold_messages(void) { STORE(hold.is_on, true); }
bool is_message_held(void) { return LOAD(hold.is_held); }
void let_messages_go(void) { STORE(hold.is_on, false); }

int look_at_message(const natsMsg *message) {
  STORE(hold.is_held, LOAD(hold.is_on));
  while (LOAD(hold.is_on)) pause_ms(1);
  return natsMsg_GetDataLength(message);
}

/* ---- libnats --------------------------------------------------------------------------------- */

natsStatus what_libnats_says(void) { return LOAD(what_is_said); }
bool refuses(int kind) { return is_refused(kind, what_libnats_says() == NATS_NO_MEMORY); }

static natsStatus counted(natsStatus status) {
  if (status == NATS_OK) count_objects(1);
  return status;
}

natsStatus ask_options(natsOptions **out) {
  return refuses(OPTIONS) ? what_libnats_says() : counted(natsOptions_Create(out));
}

void give_back_options(natsOptions *options) {
  if (options != NULL) count_objects(-1);
  natsOptions_Destroy(options);
}

natsStatus ask_statistics(natsStatistics **out) {
  return refuses(STATISTICS) ? what_libnats_says() : counted(natsStatistics_Create(out));
}

void give_back_statistics(natsStatistics *statistics) {
  if (statistics != NULL) count_objects(-1);
  natsStatistics_Destroy(statistics);
}

natsStatus ask_connection(natsConnection **out, natsOptions *options) {
  return refuses(CONNECTION) ? what_libnats_says() : counted(natsConnection_Connect(out, options));
}

void give_back_connection(natsConnection *connection) {
  if (connection != NULL) count_objects(-1);
  natsConnection_Destroy(connection);
}

natsStatus ask_subscription(natsSubscription **out, natsConnection *connection,
                            const char *subject, natsMsgHandler handler, void *closure) {
  return refuses(SUBSCRIPTION)
             ? what_libnats_says()
             : counted(natsConnection_Subscribe(out, connection, subject, handler, closure));
}

void give_back_subscription(natsSubscription *subscription) {
  if (subscription != NULL) count_objects(-1);
  natsSubscription_Destroy(subscription);
}
