#include <string.h>

#include "memory.h"
#include "model.h"

enum { KEPT_IN_PLACE = 32 }; /* largest payload that needs no allocation */

static int find_call(const model_queue *q, int index) {
  int i;
  for (i = 0; i < (int)q->stats.pending; ++i)
    if (q->calls[i].registration == index) return i;
  return NONE;
}

bool model_queue_contains(int queue, int index) {
  return find_call(&model.queues[queue], index) != NONE;
}

static void remove_call(model_queue *q, int position) {
  --q->stats.pending;
  memmove(&q->calls[position], &q->calls[position + 1],
          ((size_t)q->stats.pending - (size_t)position) * sizeof(model_call));
}

/* The first queued call of an invocation copies the payload for all of them. */
static bool can_be_copied(frame *f) {
  if (f->call.size <= KEPT_IN_PLACE || f->copy == COPIED) return true;
  return f->copy != NOT_COPYABLE && memory_failures() == model.failures_at_resume;
}

void model_queue_call(frame *f, int index) {
  const registration *r = &model.registrations[index];
  model_queue *q = &model.queues[r->queue];
  int before = find_call(q, index);
  bool is_full = (int)q->stats.pending == q->capacity;
  bool is_copied;
  if ((r->flags & MULTICAST_ONCE) && !(r->flags & MULTICAST_LATEST) && before != NONE) return;
  is_copied = can_be_copied(f);
  if (!is_copied) f->copy = NOT_COPYABLE;
  if (!is_copied ||
      (is_full && !((r->flags & MULTICAST_LATEST) && before != NONE) &&
       q->overflow != MULTICAST_OVERFLOW_DROP_OLDEST)) {
    ++q->stats.refused; /* also with MULTICAST_OVERFLOW_BLOCK: this thread ran the queue last */
    return;
  }
  f->copy = COPIED;
  ++f->made;
  ++q->stats.queued;
  if ((r->flags & MULTICAST_LATEST) && before != NONE) {
    ++q->stats.coalesced;
  } else {
    if (is_full) {
      remove_call(q, 0);
      ++q->stats.dropped;
    }
    before = (int)q->stats.pending++;
    if (q->stats.highest < q->stats.pending) q->stats.highest = q->stats.pending;
  }
  q->calls[before] = f->call;
  q->calls[before].registration = index;
}

bool model_queue_take(int queue, model_call *out) {
  model_queue *q = &model.queues[queue];
  if (!q->is_alive || q->stats.pending == 0) return false;
  *out = q->calls[0];
  remove_call(q, 0);
  ++q->stats.delivered; /* counts from the lock of the call on */
  return true;
}

int64_t model_queue_clear(int queue) {
  model_queue *q = &model.queues[queue];
  int64_t dropped = (int64_t)q->stats.pending;
  q->stats.dropped += q->stats.pending;
  q->stats.pending = 0;
  return dropped;
}

void model_queue_call_is_dead(int queue) {
  --model.queues[queue].stats.delivered;
  ++model.queues[queue].stats.retracted;
}

void model_queue_retract(int queue, int index) {
  model_queue *q = &model.queues[queue];
  int i;
  while ((i = find_call(q, index)) != NONE) {
    remove_call(q, i);
    ++q->stats.retracted;
  }
}
