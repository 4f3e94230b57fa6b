/* Functions of the files that use a client. */

#ifndef MULTICAST_TRANSPORTS_TRANSPORT_H
#define MULTICAST_TRANSPORTS_TRANSPORT_H

#include "client.h"

/* ---- Connecting: connect.c ------------------------------------------------------------------- */

/* Creates a client and starts its thread, which may call functions of the caller before this
 * returns. `copy` is memory for a copy of the options. */
multicast_status client_connect(const engine *e, const void *options, void *copy,
                                multicast_transport *out);

/* ---- The functions of a transport: transport.c ----------------------------------------------- */

/* Creates the transport of a client. Its functions check arguments and pass work to the client's
 * thread. */
multicast_transport client_transport(client *c);

/* ---- Publishing: publishing.c ---------------------------------------------------------------- */

/* The `publish` function of engines whose thread sends. Appends to the outbox. */
multicast_status client_publish(client *c, const char *name, uint32_t event, span payload);
/* Called under the lock. Returns MULTICAST_OK if a payload of this size may be appended now. */
multicast_status client_check(const client *c, size_t size);
/* Adds the header to a draft and appends it to the outbox. */
multicast_status client_send(client *c, draft *d);

/* ---- All clients, by the contexts of their transports: clients.c ----------------------------- */

bool clients_add(client *c); /* returns false if there are too many */
void clients_in_child(void); /* called in the child, inside fork() */
void clients_remove(client *c);
/* Finds a client and removes it from the table, atomically. Returns NULL if it is not there. */
client *clients_take(const void *context);
/* Finds a client, or returns NULL. Needs no lock inside the functions of a transport that has not
 * been released, since the client stays in the table meanwhile. */
client *clients_at(const void *context);

/* Finds the client of a context, and takes a reference for the caller. */
multicast_status clients_find(const void *context, client **out);
/* Does the same for a transport, and checks that this library has created the transport. */
multicast_status clients_find_transport(const multicast_transport *transport, client **out);

uint64_t deadline_of(uint64_t timeout_ns); /* a time of now_ns() */

/* Finds the client of a transport, and calls `wait` under its lock, which `wait` may release while
 * it waits. */
multicast_status client_flush(const multicast_transport *transport, uint64_t timeout_ns,
                              multicast_status (*wait)(client *c, uint64_t deadline));
/* Fills `stats`, which has `size` bytes, under the client's lock, and copies it to `out`. */
multicast_status client_get_stats(const multicast_transport *transport, void *out, void *stats,
                                  size_t size, void (*fill)(const client *c, void *stats));

/* ---- Answering questions: answers.c ---------------------------------------------------------- */

/* These implement the exported functions. `function` has the type that the engine's header
 * declares. */
multicast_status client_answer(const multicast_transport *transport, const char *name,
                               void (*function)(void), void *context,
                               void (*release)(void *context));
multicast_status client_reply(uint64_t transport, origin to, const void *payload, size_t size);
/* Called on the delivering thread, not under the lock. Returns a negative status if no function
 * answers the name. */
int64_t client_be_asked(client *c, const char *name, uint32_t event, span payload, origin from);

/* ---- Asking questions: asking.c -------------------------------------------------------------- */

multicast_status client_ask(const multicast_transport *transport, const query *q, visitor *visit,
                            void *context);

/* ---- Questions sent through a broker: carried.c ---------------------------------------------- */

/* These are functions of an `engine`. */
multicast_status carried_reply(client *c, origin to, span payload);
inquiry *carried_ask(client *c, const query *q, multicast_status *status);
told *carried_next(client *c, inquiry *i, uint64_t deadline, multicast_status *status);
void carried_forget(client *c, inquiry *i);

/* Called on any thread when an answer has arrived. Ignores it if the question has ended. */
void carried_answered(client *c, uint64_t number, span payload);
/* Called under the lock when there will be no answer. Ends the question if it has not ended. */
void carried_end(client *c, uint64_t number, multicast_status why);
/* Called under the lock when the connection has ended. Ends all questions. */
void carried_end_all(client *c);
/* Called under the lock. Returns whether the next publication may be sent. A question may be sent
 * only when all changes of names have been sent, because these include the subscription to its
 * answer. */
bool carried_may_send(client *c);
/* Called under the lock. Removes the next publication from the outbox, and drops questions that
 * have ended. Returns NULL if there is none, or if it may not be sent yet. */
publication *carried_take(client *c);

/* ---- Delivery: delivery.c -------------------------------------------------------------------- */

/* Received messages are in a list until the client's thread delivers them. */

/* Called on any thread. Counts a message and appends it to the list, unless `name` is NULL. Returns
 * whether it will be delivered. */
bool client_receive(client *c, const char *name, uint32_t event, span payload, origin from);
/* Called on the client's thread. Delivers up to `most` messages, or queues them for the delegate of
 * the inbox. */
void client_deliver(client *c, size_t most);
/* Creates the inbox if the options have a queue. */
multicast_status client_create_inbox(client *c);
void client_count_lost(client *c);     /* counts a message that was not delivered */
uint64_t client_lost(const client *c); /* the number of those; called under the lock */

#endif
