/* Declares the functions of the files that use `client.h`. */

#ifndef MULTICAST_TRANSPORTS_TRANSPORT_H
#define MULTICAST_TRANSPORTS_TRANSPORT_H

#include "client.h"

/* ---- Connecting: connect.c ------------------------------------------------------------------- */

/* Creates a client and starts its thread. The thread may call the program's functions before
 * client_connect() returns. `copy` points to memory for a copy of the options. */
multicast_status client_connect(const engine *e, const void *options, void *copy,
                                multicast_transport *out);

/* ---- The functions of a transport: transport.c ----------------------------------------------- */

/* Creates the transport of a client. The transport's functions check their arguments and pass work
 * to the client's thread. */
multicast_transport client_transport(client *c);

/* ---- Publishing: publishing.c ---------------------------------------------------------------- */

/* The `publish` function of engines that send on the client's thread. Appends a publication to the
 * outbox. */
multicast_status client_publish(client *c, const char *name, uint32_t event, span payload);
/* Called under the lock. Returns MULTICAST_OK if a payload of `size` bytes may be appended now. */
multicast_status client_check(const client *c, size_t size);
/* Adds the header to a draft and appends it to the outbox. */
multicast_status client_send(client *c, draft *d);

/* ---- All clients, by the contexts of their transports: clients.c ----------------------------- */

bool clients_add(client *c); /* returns false if there are too many */
void clients_remove(client *c);
/* Atomically finds a client and removes it from the table. Returns NULL if there is none. */
client *clients_take(const void *context);
/* Finds a client, or returns NULL. The functions of a transport can call clients_at() without a
 * lock, because the client stays in the table until the transport has been released. */
client *clients_at(const void *context);

/* Finds the client of a context, and acquires a reference for the caller. */
multicast_status clients_find(const void *context, client **out);
/* Finds the client of a transport, and acquires a reference for the caller. Fails if another
 * library has created the transport. */
multicast_status clients_find_transport(const multicast_transport *transport, client **out);

uint64_t deadline_of(uint64_t timeout_ns); /* returns a time on the clock of now_ns() */

/* Finds the client of a transport, and calls `wait` under the client's lock. `wait` may release the
 * lock while it waits. */
multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline));
/* Calls `fill` under the client's lock to set `stats`, and then copies `stats`, which is `size`
 * bytes long, to `out`. */
multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats));

/* ---- Answering questions: answers.c ---------------------------------------------------------- */

/* These functions implement the exported functions. `function` has the type that the engine's
 * header declares. */
multicast_status client_answer(const multicast_transport *transport, const char *name,
                               void (*function)(void), void *context,
                               void (*release)(void *context));
multicast_status client_reply(uint64_t transport, origin to, const void *payload, size_t size);
/* Called on the thread that delivers messages, without the lock. Returns a negative status if no
 * function answers questions about the name. */
int64_t client_be_asked(client *c, const char *name, uint32_t event, span payload, origin from);

/* ---- Asking questions: asking.c -------------------------------------------------------------- */

multicast_status client_ask(const multicast_transport *transport, const query *q, visitor *visit,
                            void *context);

/* ---- Questions sent through a broker: carried.c ---------------------------------------------- */

/* The functions `reply`, `ask`, `next` and `forget` of the engines for MQTT and NATS. */
multicast_status carried_reply(client *c, origin to, span payload);
inquiry *carried_ask(client *c, const query *q, multicast_status *status);
told *carried_next(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
void carried_forget(client *c, inquiry *i);

/* Called on any thread when an answer has arrived. Ignores the answer if the question has ended. */
void carried_answered(client *c, uint64_t number, span payload);
/* Called under the lock when no more answers can arrive. Ends the question unless the question has
 * already ended. */
void carried_end(client *c, uint64_t number, multicast_status why);
/* Called under the lock when the connection has ended. Ends all questions. */
void carried_end_all(client *c);
/* Called under the lock. Returns whether the next publication may be sent. A question must wait
 * until all changes of names have been sent, because these changes include the subscription to the
 * answers. */
bool carried_may_send(client *c);
/* Called under the lock. Removes and returns the next publication of the outbox, and drops
 * questions that have ended. Returns NULL if the outbox is empty or the publication must wait. */
publication *carried_take(client *c);

/* ---- Delivery: delivery.c -------------------------------------------------------------------- */

/* Received messages wait in a list until the client's thread delivers them. */

/* Called on any thread. Counts a message and, if `name` is not NULL, appends it to the list.
 * Returns whether the message will be delivered. */
bool client_receive(client *c, const char *name, uint32_t event, span payload, origin from);
/* Called on the client's thread. Delivers up to `most` messages. If there is an inbox, queues the
 * messages for the inbox's delegate instead. */
void client_deliver(client *c, size_t most);
/* Creates the inbox if the options contain a queue. */
multicast_status client_create_inbox(client *c);
void client_count_lost(client *c);     /* counts a message that was not delivered */
uint64_t client_lost(const client *c); /* returns their number; called under the lock */

#endif
