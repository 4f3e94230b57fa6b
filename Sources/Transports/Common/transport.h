/* The uses of a client: a transport, its connection, the list of all, and deliveries. */

#ifndef MULTICAST_TRANSPORTS_TRANSPORT_H
#define MULTICAST_TRANSPORTS_TRANSPORT_H

#include "client.h"

/* ---- Connecting: connect.c ------------------------------------------------------------------- */

/* Makes a client and starts its thread. That may call functions of the caller before this returns.
 * `copy` has room for the options. */
multicast_status client_connect(const engine *e, const void *options, void *copy,
                                multicast_transport *out);

/* ---- The functions of a transport: transport.c ----------------------------------------------- */

/* They check arguments and pass work on to the client's thread. */
multicast_transport client_transport(client *c);

/* ---- Publishing: publishing.c ---------------------------------------------------------------- */

/* `publish` of an engine whose thread sends: appends to the outbox. */
multicast_status client_publish(client *c, const char *name, uint32_t event, span payload);
/* Under the lock. Whether a payload of this size may be appended to the outbox now. */
multicast_status client_check(const client *c, size_t size);
/* Publishes a draft that lacks only its header. */
multicast_status client_send(client *c, draft *d);

/* ---- All clients, by the contexts of their transports: clients.c ----------------------------- */

bool clients_add(client *c); /* false: there are too many */
void clients_in_child(void); /* of a fork, inside of it */
void clients_remove(client *c);
/* Finds one and removes it; NULL: there is none. So several threads may try that at once. */
client *clients_take(const void *context);
/* Without a lock in the functions of a transport that is not released: the client was added before,
 * and is removed after. NULL: there is none. */
client *clients_at(const void *context);

/* That of a context, with a reference for the caller; NULL: the status says why. */
multicast_status clients_find(const void *context, client **out);
/* That of a transport of this library. Another library, or the program, may have made it. */
multicast_status clients_find_transport(const multicast_transport *transport, client **out);

uint64_t deadline_of(uint64_t timeout_ns); /* in the time of now_ns() */

/* Finds the client of a transport and calls the function under its lock; `wait` may give that up
 * meanwhile. */
multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline));
/* `stats` has so many bytes, and is written to `out`. */
multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats));

/* ---- Questions that others ask: answers.c ---------------------------------------------------- */

/* Like the exported functions; `function` is as the engine's header declares it. */
multicast_status client_answer(const multicast_transport *transport, const char *name,
                               void (*function)(void), void *context,
                               void (*release)(void *context));
multicast_status client_reply(uint64_t transport, origin to, const void *payload, size_t size);
/* On the thread that delivers, not under the lock. Negative: nobody answers here. */
int64_t client_be_asked(client *c, const char *name, uint32_t event, span payload, origin from);

/* ---- Questions that are asked here: asking.c ------------------------------------------------- */

multicast_status client_ask(const multicast_transport *transport, const query *q, visitor *visit,
                            void *context);

/* ---- Questions that a broker carries: carried.c ---------------------------------------------- */

/* As `engine` says. */
multicast_status carried_reply(client *c, origin to, span payload);
inquiry *carried_ask(client *c, const query *q, multicast_status *status);
told *carried_next(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
void carried_forget(client *c, inquiry *i);

/* On any thread: what has come is an answer; one that nobody waits for is ignored. */
void carried_answered(client *c, uint64_t number, span payload);
/* Under the lock: there will be no answer. Nothing, if nobody waits for it. */
void carried_end(client *c, uint64_t number, multicast_status why);
/* Under the lock: the connection has ended, and with it all questions. */
void carried_end_all(client *c);
/* Under the lock. A question is sent when the broker has been told of all names: so of where its
 * answer goes. */
bool carried_may_send(client *c);
/* Under the lock: the next publication to send, without questions that nobody waits for; NULL:
 * there is none, or it may not be sent yet. */
publication *carried_take(client *c);

/* ---- Delivery: delivery.c -------------------------------------------------------------------- */

/* Arrivals wait in a list, and the thread delivers them to the observers. */

/* On any thread. Counts a message, and has its payload delivered; without a name it is ignored.
 * Whether it will be. */
bool client_receive(client *c, const char *name, uint32_t event, span payload, origin from);
/* On the client's thread. Delivers so many at most, or queues them for the inbox's delegate. */
void client_deliver(client *c, size_t most);
/* If the options have a queue. */
multicast_status client_create_inbox(client *c);
void client_count_lost(client *c);     /* one that was not delivered */
uint64_t client_lost(const client *c); /* under the lock: how many were not delivered */

#endif
