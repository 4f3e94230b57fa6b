/* The exported functions of a library. All libraries export these functions, but under different
 * names. One file of each library defines TRANSPORT(name), which adds the library's prefix to a
 * name, and then includes this header. */

#ifndef MULTICAST_TRANSPORTS_EXPORTS_H
#define MULTICAST_TRANSPORTS_EXPORTS_H

#include "transport.h"

/* The file that includes this header defines the following object and functions. */
static const engine transport_engine;
static multicast_status wait_until_flushed(client *base, uint64_t deadline);
static void fill_stats(const client *base, void *stats);

/* Initializes the fields of `settings` from the options that all libraries share. */
#define SETTINGS_OF(o)                                                                     \
  .broadcaster = (o)->broadcaster, .queue = (o)->queue,                                    \
  .reconnect_min_ns = (o)->reconnect_min_ns, .reconnect_max_ns = (o)->reconnect_max_ns,    \
  .changed = (o)->changed, .context = (o)->context, .release = (o)->release

/* Initializes the fields of `settings` from the options that all broker-based libraries share. */
#define SETTINGS_OF_BROKER(o, refuse_offline)                                              \
  SETTINGS_OF(o), .refuses_offline = ((o)->flags & (refuse_offline)) != 0,                 \
      .capacity = (o)->capacity, .overflow = (o)->overflow, .max_payload = (o)->max_payload, \
      .connect_timeout_ns = (o)->connect_timeout_ns

/* Initializes the members of `engine` that are the same in all libraries with a broker. */
#define ENGINE_OF_BROKER                                                                   \
  .questions = &question_coding, .settle = settle, .start = start, .prepare = prepare,     \
  .publish = client_publish, .answer = call_answerer, .reply = carried_reply,              \
  .ask = carried_ask, .next = carried_next, .forget = carried_forget,                      \
  .write_return = write_return, .run = session_run, .end = session_end, .free = free_client

/* Fills the statistics of a library with a broker. */
#define FILL_STATS_OF_BROKER(base, out)                                                    \
  do {                                                                                     \
    const counts *n = &(base)->counts;                                                     \
    (out)->names = (uint32_t)(base)->names.wanted;                                         \
    (out)->connections = n->connections;                                                   \
    (out)->published = (base)->outbox.tickets;                                             \
    (out)->waiting = (base)->outbox.waiting;                                               \
    (out)->sent = n->sent;                                                                 \
    (out)->dropped = n->dropped;                                                           \
    (out)->rejected = n->rejected;                                                         \
    (out)->refused = n->refused;                                                           \
    (out)->received = n->received;                                                         \
    (out)->delivered = __atomic_load_n(&(base)->delivered, __ATOMIC_RELAXED);              \
    (out)->ignored = n->ignored;                                                           \
    (out)->lost = client_lost(base);                                                       \
  } while (0)

/* ---- The transport --------------------------------------------------------------------------- */

multicast_status TRANSPORT(connect)(const TRANSPORT(options) *options, multicast_transport *out) {
  TRANSPORT(options) copy;
  return client_connect(&transport_engine, options, &copy, out);
}

multicast_status TRANSPORT(flush)(const multicast_transport *transport, uint64_t timeout_ns) {
  return client_flush(transport, timeout_ns, wait_until_flushed);
}

multicast_status TRANSPORT(get_stats)(const multicast_transport *transport,
                                      TRANSPORT(stats) *out) {
  TRANSPORT(stats) stats = TRANSPORT(stats_default)();
  return client_get_stats(transport, out, &stats, sizeof stats, fill_stats);
}

/* ---- Questions ------------------------------------------------------------------------------- */

typedef void function_of_name(void *context, const TRANSPORT(question) *question, uint32_t event,
                              const void *payload, size_t size);

/* The engine's function `answer`. */
static void call_answerer(const answerer *a, uint64_t handle, uint32_t event, span payload,
                          origin from) {
  const TRANSPORT(question) question = {handle, from.peer, from.number};
  ((function_of_name *)a->function)(a->context, &question, event, payload.at, payload.size);
}

multicast_status TRANSPORT(answer)(const multicast_transport *transport, const char *name,
                                   function_of_name *function, void *context,
                                   void (*release)(void *context)) {
  return client_answer(transport, name, (void (*)(void))function, context, release);
}

multicast_status TRANSPORT(reply)(const TRANSPORT(question) *question, const void *payload,
                                  size_t size) {
  if (question == NULL) return MULTICAST_ERROR_INVALID_ARGUMENT;
  return client_reply(question->transport, (origin){question->peer, question->number}, payload,
                      size);
}

multicast_status TRANSPORT(ask)(const multicast_transport *transport, const char *name,
                                uint32_t event, const void *payload, size_t size,
                                uint64_t timeout_ns, visitor *visit, void *context) {
  const query q = {name, event, {payload, size}, deadline_of(timeout_ns)};
  return client_ask(transport, &q, visit, context);
}

#endif
