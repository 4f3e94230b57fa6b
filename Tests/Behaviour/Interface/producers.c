#include "producers.h"

/* ---- Messages -------------------------------------------------------------------------------- */

size_t largest = 100; /* maximum size of a message */

static size_t size_of_message(const message *m) {
  return sizeof *m + (m->sequence * 13u + m->producer) % (largest - sizeof *m + 1);
}

size_t write_message(unsigned char *bytes, uint32_t producer, uint32_t sequence) {
  message m = {.producer = producer, .sequence = sequence};
  size_t size = size_of_message(&m);
  memcpy(bytes, &m, sizeof m);
  for (size_t i = sizeof m; i < size; ++i) bytes[i] = (unsigned char)(sequence + i);
  return size;
}

message read_message(const void *payload, size_t size) {
  const unsigned char *bytes = payload;
  message m;
  CHECK(size >= sizeof m);
  memcpy(&m, payload, sizeof m);
  CHECK_EQ(size, size_of_message(&m));
  for (size_t i = sizeof m; i < size; ++i) CHECK_EQ(bytes[i], (unsigned char)(m.sequence + i));
  return m;
}

/* ---- Producers ------------------------------------------------------------------------------- */

THREAD(produce, producer *p) {
  unsigned char bytes[100];
  for (uint32_t i = 1; i <= p->count; ++i) {
    size_t size = write_message(bytes, p->number, i);
    int64_t result = multicast_invoke(p->target, 0, bytes, size);
    if (p->may_fail && result == MULTICAST_ERROR_INVALID_HANDLE) break;
    CHECK(result >= 0);
    p->queued += result;
  }
}

void start_producers(producer *p, uint32_t producers, multicast m, uint32_t count) {
  for (uint32_t i = 0; i < producers; ++i) {
    p[i].target = m;
    p[i].number = i;
    p[i].count = count;
    p[i].queued = 0;
    p[i].may_fail = false;
    p[i].thread = start_thread(produce, &p[i]);
  }
}

int64_t join_producers(producer *p, uint32_t producers) {
  int64_t queued = 0;
  for (uint32_t i = 0; i < producers; ++i) {
    join_thread(p[i].thread);
    queued += p[i].queued;
  }
  return queued;
}

/* ---- Delegates ------------------------------------------------------------------------------- */

FUNCTION(receive, inbox *in) {
  message m = read_message(payload, size);
  CHECK_EQ(ADD(in->inside, 1), 1); /* calls do not overlap */
  if (in->has_gaps) {
    CHECK(m.sequence > in->last[m.producer]);
  } else {
    CHECK_EQ(m.sequence, in->last[m.producer] + 1);
  }
  in->last[m.producer] = m.sequence;
  ADD(in->inside, -1);
  ADD(in->received, 1);
}

multicast_delegate receiving(inbox *in) {
  memset(in, 0, sizeof *in);
  return (multicast_delegate){receive, in};
}

uint64_t calls_seen;

void call_guest(void *context, uint32_t event, const void *payload, size_t size) {
  guest *g = context;
  CHECK_EQ(LOAD(g->magic), ALIVE);
  read_message(payload, size);
  ++g->calls;
  ADD(calls_seen, 1);
  CHECK_EQ(LOAD(g->magic), ALIVE);
}

/* ---- Sleepers -------------------------------------------------------------------------------- */

void *wait_in_queue(void *argument) {
  sleeper *s = argument;
  s->result = multicast_queue_wait(s->queue, UINT64_MAX);
  gate_open(&s->returned);
  return NULL;
}

void *invoke_into_full(void *argument) {
  sleeper *s = argument;
  s->result = multicast_invoke(s->target, 0, NULL, 0);
  gate_open(&s->returned);
  return NULL;
}
