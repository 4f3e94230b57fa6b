#include "transport.h"

#include <stdlib.h>

bool client_receive(client *c, const char *name, uint32_t event, span payload, origin from) {
  const bool is_ours = name != NULL && payload.size <= c->settings.max_payload;
  const size_t whole = is_ours ? arrival_size(name, payload) : 0;
  arrival *a = NULL;
  bool is_taken = false;
  if (whole > BLOCK_SIZE) a = arrival_write(malloc(whole), whole, name, event, payload);
  pthread_mutex_lock(&c->lock);
  if (is_ours && whole <= BLOCK_SIZE)
    a = arrival_write(blocks_take(&c->blocks), whole, name, event, payload);
  ++c->counts.received;
  if (!is_ours) {
    ++c->counts.ignored;
  } else if (a == NULL || c->is_stopping) {
    ++c->counts.lost;
    free(a);
  } else {
    a->from = from;
    c->arrived_bytes += whole;
    arrivals_append(&c->arrivals, a);
    client_wake(c);
    is_taken = true;
  }
  pthread_mutex_unlock(&c->lock);
  return is_taken;
}

static int64_t deliver(client *c, const arrival *a) {
  if (a->from.peer != 0)
    return client_be_asked(c, a->name, a->event, (span){a->payload, a->size}, a->from);
  return multicast_broadcaster_deliver(c->settings.broadcaster, a->name, a->event,
                                       a->size == 0 ? NULL : a->payload, a->size);
}

/* ---- On the client's thread ------------------------------------------------------------------ */

/* Does not acquire the client's lock, which may stay locked forever in the child of a fork. */
static void release_arrival(const void *payload, size_t size) {
  arrival *a = (arrival *)(uintptr_t)payload;
  (void)size;
  if (!a->is_counted) __atomic_add_fetch(&a->drops->count, 1, __ATOMIC_RELAXED);
  drops_release(a->drops);
  free(a);
}

void client_count_lost(client *c) {
  pthread_mutex_lock(&c->lock);
  ++c->counts.lost;
  pthread_mutex_unlock(&c->lock);
}

/* Delivers a message, or queues it for the inbox's delegate. Returns whether the message's memory
 * can be reused. */
static bool deliver_one(client *c, arrival *a) {
  const unsigned forks = process_forks();
  int64_t result;
  if (c->inbox.id != 0) {
    multicast_invocation how = multicast_invocation_default();
    how.payload = a;
    how.release = release_arrival; /* counts the message as lost if the queue refuses it */
    a->drops = c->drops;
    __atomic_add_fetch(&c->drops->references, 1, __ATOMIC_RELAXED);
    multicast_invoke_with(c->inbox, &how, NULL);
    client_end_in_child(forks); /* the queue may have called a function of the program */
    return false;
  }
  result = deliver(c, a);
  client_end_in_child(forks);
  if (result < 0) client_count_lost(c);
  /* An atomic increment is not needed, because without an inbox only this thread delivers. */
  else __atomic_store_n(&c->delivered, c->delivered + 1, __ATOMIC_RELAXED);
  return true;
}

/* Removes the whole list and marks the thread as away. Acquiring the lock for each message would
 * cost more time than the delivery itself. */
static arrivals take(client *c) {
  arrivals all;
  pthread_mutex_lock(&c->lock);
  all = c->arrivals;
  c->arrivals.first = NULL;
  c->is_away = all.first != NULL && !c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return all;
}

/* Puts undelivered messages back, in front of messages that arrived during the delivery. Returns
 * the memory of the delivered messages to the pool. */
static void put_back(client *c, const arrivals *left, uint64_t delivered_bytes, blocks *delivered) {
  pthread_mutex_lock(&c->lock);
  c->is_away = false;
  c->arrived_bytes -= delivered_bytes;
  blocks_move(&c->blocks, delivered);
  arrivals_put_back(&c->arrivals, left);
  pthread_mutex_unlock(&c->lock);
}

void client_deliver(client *c, size_t most) {
  while (most > 0) {
    arrivals all = take(c);
    blocks delivered = {NULL, NULL, 0};
    uint64_t bytes = 0;
    if (all.first == NULL) return;
    for (; all.first != NULL && most > 0; --most) {
      arrival *a = all.first;
      all.first = a->next;
      bytes += a->whole;
      /* Once the transport has been released, a running observer may finish, but no other observer
       * may be called. */
      if (__atomic_load_n(&c->is_stopping, __ATOMIC_RELAXED) || deliver_one(c, a))
        blocks_give(&delivered, a, a->whole);
    }
    put_back(c, &all, bytes, &delivered);
  }
}

/* ---- The inbox ------------------------------------------------------------------------------- */

static void deliver_from_inbox(void *context, uint32_t event, const void *payload, size_t size) {
  client *c = context;
  arrival *a = (arrival *)(uintptr_t)payload; /* the inbox has no other delegate */
  const unsigned forks = process_forks();
  int64_t result = deliver(c, a);
  (void)event, (void)size;
  a->is_counted = true;
  if (forks != process_forks()) return;
  if (result < 0) client_count_lost(c);
  else __atomic_add_fetch(&c->delivered, 1, __ATOMIC_RELAXED);
}

uint64_t client_lost(const client *c) {
  return c->counts.lost +
         (c->drops == NULL ? 0 : __atomic_load_n(&c->drops->count, __ATOMIC_RELAXED));
}

static void release_inbox(void *context) { client_release(context); }

multicast_status client_create_inbox(client *c) {
  multicast_delegate delegate = {deliver_from_inbox, c};
  multicast_add_options how = multicast_add_options_default();
  multicast_status status;
  if (c->settings.queue.id == 0) return MULTICAST_OK;
  c->drops = calloc(1, sizeof *c->drops);
  if (c->drops == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  c->drops->references = 1;
  c->inbox = multicast_create();
  if (c->inbox.id == 0) return MULTICAST_ERROR_OUT_OF_MEMORY;
  how.queue = c->settings.queue;
  how.release = release_inbox;
  client_retain(c);
  status = multicast_add(c->inbox, delegate, &how, NULL); /* calls `release` if it fails */
  if (status != MULTICAST_OK) multicast_destroy(c->inbox);
  return status;
}
