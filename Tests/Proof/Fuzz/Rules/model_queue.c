#include <string.h>

#include "model.h"

enum { KEPT_IN_PLACE = 32 }; /* the largest payload that needs no allocation */

static int find_call(const model_queue *q, int index) {
  for (int i = 0; i < (int)q->stats.pending; ++i)
    if (q->calls[i].registration == index) return i;
  return NONE;
}

bool model_queue_contains(int queue, int index) {
  return find_call(&model.queues[queue], index) != NONE;
}

static void remove_call(model_queue *q, int position) {
  int cargo = q->calls[position].cargo;
  --q->stats.pending;
  memmove(&q->calls[position], &q->calls[position + 1],
          ((size_t)q->stats.pending - (size_t)position) * sizeof(model_call));
  if (cargo != NONE) --model.cargos[cargo].queued;
}

/* Drops a call and releases its reference to the payload. */
static void drop_call(model_queue *q, int position) {
  int cargo = q->calls[position].cargo;
  remove_call(q, position);
  if (cargo != NONE) (void)model_cargo_unref(cargo);
}

/* Returns whether the library has the memory that the call needs. */
static bool prepare(frame *f, int queue) {
  bool is_waiting = f->cargo != NONE && model.cargos[f->cargo].is_waiting;
  bool is_shared = is_waiting || f->has_copier || f->copy == COPIED || f->call.size > KEPT_IN_PLACE;
  if (!is_shared) return true;
  if (f->copy == NOT_COPYABLE) return false;
  if (f->copy != COPIED) {
    if (!model_take_memory()) return false;
    EXPECT(!f->has_copier, "a copy is missing");
    f->copy = COPIED;
  }
  if (!is_waiting || f->row == queue) return true;
  if (!model_take_memory()) return false;
  f->row = queue;
  return true;
}

static void store(frame *f, model_queue *q, int position, int index) {
  model_call *call = &q->calls[position];
  *call = f->call;
  call->registration = index;
  call->cargo = f->cargo;
  if (f->cargo == NONE) return;
  ++model.cargos[f->cargo].references;
  ++model.cargos[f->cargo].queued;
  if (model.cargos[f->cargo].has_payload) call->payload = model.cargos[f->cargo].payload;
}

void model_queue_call(frame *f, int index) {
  const registration *r = &model.registrations[index];
  model_queue *q = &model.queues[r->queue];
  bool is_prepared = prepare(f, r->queue);
  int before = find_call(q, index);
  bool is_full = (int)q->stats.pending == q->capacity;
  if (!r->is_live || !q->is_alive) return; /* it was removed while the payload was copied */
  if ((r->flags & MULTICAST_ONCE) && !(r->flags & MULTICAST_LATEST) && before != NONE) return;
  if (!is_prepared || (is_full && !((r->flags & MULTICAST_LATEST) && before != NONE) &&
                       q->overflow != MULTICAST_OVERFLOW_DROP_OLDEST)) {
    ++q->stats.refused; /* even with MULTICAST_OVERFLOW_BLOCK: this thread ran the queue last */
    ++f->refused;
    return;
  }
  ++f->made;
  ++f->queued;
  ++q->stats.queued;
  if ((r->flags & MULTICAST_LATEST) && before != NONE) {
    model_call old = q->calls[before];
    ++q->stats.coalesced;
    store(f, q, before, index);
    if (old.cargo != NONE) {
      --model.cargos[old.cargo].queued;
      (void)model_cargo_unref(old.cargo);
    }
  } else {
    if (is_full) {
      drop_call(q, 0);
      ++q->stats.dropped;
    }
    if (q->stats.highest < ++q->stats.pending) q->stats.highest = q->stats.pending;
    store(f, q, (int)q->stats.pending - 1, index);
  }
  if (q->needs_wake) f->woken = r->queue;
  q->needs_wake = false;
}

bool model_queue_next(frame *f) {
  if (f->is_over) return false;
  model_find_next(f);
  if (f->next != TO_QUEUE) return false;
  f->next = UNKNOWN;
  model_queue_call(f, f->current);
  return true;
}

bool model_queue_take(int queue, model_call *out) {
  model_queue *q = &model.queues[queue];
  if (!q->is_alive || q->stats.pending == 0) return false;
  *out = q->calls[0];
  remove_call(q, 0);
  q->was_run = true;
  ++q->stats.delivered; /* counted when the context is locked for the call */
  return true;
}

int64_t model_queue_clear(int queue) {
  model_queue *q = &model.queues[queue];
  int64_t dropped = (int64_t)q->stats.pending;
  q->stats.dropped += q->stats.pending;
  while (q->stats.pending > 0) drop_call(q, 0);
  return dropped;
}

void model_queue_call_is_dead(int queue) {
  --model.queues[queue].stats.delivered;
  ++model.queues[queue].stats.cancelled;
}

void model_queue_cancel(int queue, int index) {
  model_queue *q = &model.queues[queue];
  int i;
  while ((i = find_call(q, index)) != NONE) {
    drop_call(q, i);
    ++q->stats.cancelled;
  }
}
