#define _GNU_SOURCE
#include "operations.h"

#include <pthread.h>
#include <string.h>

#include "actor.h"
#include "atomics.h"
#include "context.h"
#include "failure.h"
#include "shipment.h"
#include "statuses.h"
#include "world.h"

/* ---- Shipments ------------------------------------------------------------------------------- */

void shipment_make(shipment *s, shipping how) {
  uint32_t event = random_event();
  size_t size = random_size();
  s->how = multicast_invocation_default();
  s->receipts = receipts_make();
  s->own = NULL;
  /* An empty payload in a parcel has no bytes to verify, so its event must show that there is a
   * parcel. */
  if (how != PLAIN && (size == 0 || one_in(2))) event += PARCELS;
  s->how.event = event;
  s->how.size = size;
  switch (how) {
    case PLAIN: s->how.payload = payload_of(event, size); break;
    case HANDED_OVER:
      s->how.payload = parcel_make(event, size, s->receipts);
      s->how.release = parcel_release;
      break;
    case COPIED:
      s->how.payload = s->own = parcel_make_own(event, size, s->receipts);
      s->how.copy = parcel_copy;
      s->how.release = parcel_release;
  }
}

void shipment_end(void *ended) {
  shipment *s = ended;
  if (s->own != NULL) parcel_end_own(s->own);
  receipts_release(s->receipts);
}

static void check_failure(const shipment *s, const multicast_outcome *o) {
  MUST(o->called + o->queued + o->refused + o->finished + o->unfinished == 0,
       "outcome of a failure: %llu called, %llu queued", (unsigned long long)o->called,
       (unsigned long long)o->queued);
  MUST(LOAD(s->receipts->left) == 0, "payloads left after a failure: %d", s->receipts->left);
}

void shipment_check(const shipment *s, int64_t count, const multicast_outcome *o) {
  bool is_waiting = s->how.flags & MULTICAST_WAIT;
  const receipts *r = s->receipts;
  MUST(o->flags == 0, "flags 0x%x", o->flags);
  if (count < 0 && count != MULTICAST_ERROR_TIMEOUT) {
    check_failure(s, o);
    return;
  }
  /* The invocation has been deferred, and has therefore returned 0. */
  if (count == 0 && o->called == 0 && o->queued == 1) return;
  MUST(count < 0 || (uint64_t)count == o->called + o->queued, "%lld, %llu called, %llu queued",
       (long long)count, (unsigned long long)o->called, (unsigned long long)o->queued);
  MUST(count >= 0 || s->how.timeout_ns > 0, "a timeout without a time");
  MUST(o->finished + o->unfinished <= o->queued, "%llu finished, %llu unfinished, %llu queued",
       (unsigned long long)o->finished, (unsigned long long)o->unfinished,
       (unsigned long long)o->queued);
  MUST(is_waiting || o->finished + o->unfinished == 0, "finished without waiting: %llu",
       (unsigned long long)o->finished);
  if (o->queued > 0 && (!is_waiting || o->unfinished > 0)) return;
  MUST(LOAD(r->left) == 0, "payloads left after all calls: %d", r->left);
  if (s->how.event < PARCELS) return;
  /* A call also counts as made if its thread has ended inside it. */
  MUST((uint64_t)LOAD(r->begun) == o->called + o->finished && LOAD(r->returned) <= LOAD(r->begun),
       "%d calls begun, %d returned, %llu called, %llu finished", r->begun, r->returned,
       (unsigned long long)o->called, (unsigned long long)o->finished);
}

int64_t shipment_send(shipment *s, multicast_outcome *o, int64_t (*send)(const shipment *s,
                                                                       multicast_outcome *o)) {
  order own, *outer = order_begins(&own);
  int64_t count;
  memset(o, 0xA5, sizeof *o);
  o->struct_size = sizeof *o;
  pthread_cleanup_push(shipment_end, s); /* the thread may end inside a call */
  count = send(s, o);
  order_ends(outer, count);
  shipment_check(s, count, o);
  pthread_cleanup_pop(true);
  return count;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* Decides whether to wait for queued calls. In a calm round, delegates must never wait. */
static void choose_wait(shipment *s) {
  if (LOAD(world_is_calm) && !is_outside_of_calls()) return;
  if (one_in(2)) return;
  s->how.flags = MULTICAST_WAIT;
  if (one_in(2)) s->how.timeout_ns = 1 + random_below(300000);
}

static int64_t to_a_multicast(const shipment *s, multicast_outcome *o) {
  return multicast_invoke_with(random_multicast(), &s->how, o);
}

static int64_t to_a_name(const shipment *s, multicast_outcome *o) {
  return multicast_broadcaster_notify_with(random_broadcaster(), random_name(), &s->how, o);
}

static void send_any(int64_t (*send)(const shipment *s, multicast_outcome *o)) {
  shipment s;
  multicast_outcome o;
  shipment_make(&s, (shipping)random_below(3));
  choose_wait(&s);
  int64_t count = shipment_send(&s, &o, send);
  /* A deferred invocation needs a copy of the payload, and `copy` may fail. */
  EXPECT_COUNT(count, OK | INVALID_HANDLE | TIMEOUT | STATE |
                          (s.how.copy != NULL ? OUT_OF_MEMORY : 0));
}

OPERATION("multicast_invoke_with", 100) { send_any(to_a_multicast); }
OPERATION("multicast_broadcaster_notify_with", 15) { send_any(to_a_name); }

OPERATION("multicast_token_invoke", 40) {
  uint32_t event = random_event();
  size_t size = random_size();
  order own, *outer = order_begins(&own);
  int64_t count = multicast_token_invoke(random_token(), event, payload_of(event, size), size);
  EXPECT_COUNT(count, OK | INVALID_HANDLE | STATE);
  MUST(count <= 1, "%lld calls of one registration", (long long)count);
  actor_current()->order = outer;
}

/* A visitor that calls the delegate. Its result has no effect. */
static bool pass_on(void *context, const multicast_delegate *d) {
  d->function(d->context, VISITED, NULL, 0);
  return context != NULL;
}

OPERATION("multicast_token_visit", 15) {
  order own, *outer = order_begins(&own);
  int64_t count = multicast_token_visit(random_token(), pass_on, one_in(2) ? &own : NULL);
  EXPECT_COUNT(count, OK | INVALID_HANDLE);
  MUST(count <= 1, "%lld visits of one registration", (long long)count);
  actor_current()->order = outer;
}

OPERATION("multicast_call_stack", 5) {
  multicast_token all[256], some[2] = {{0}, {0}};
  int64_t depth = multicast_call_stack(all, 256), i;
  MUST(depth >= 0 && depth <= 256, "%lld calls", (long long)depth);
  for (i = 0; i < depth; ++i) MUST(all[i].id != 0, "call %lld", (long long)i);
  MUST(multicast_token_current().id == (depth > 0 ? all[depth - 1].id : 0), "innermost call");
  MUST(multicast_call_stack(some, 1) == depth && multicast_call_stack(NULL, 0) == depth,
       "%lld calls", (long long)depth);
  MUST(some[0].id == (depth > 0 ? all[0].id : 0) && some[1].id == 0, "outermost call");
}
