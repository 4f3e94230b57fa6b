#define _GNU_SOURCE
#include "carrier.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actor.h"
#include "atomics.h"
#include "failure.h"
#include "kept.h"
#include "world.h"

enum { ALIVE = 0xCA441E4, ENDED = 0x0DEADCA4 };

typedef struct carrier {
  uint32_t state;
  uint32_t word; /* not atomic, so that the thread sanitizer detects races */
  int32_t inside;
  pid_t process;
  int32_t notifying[NAME_COUNT];       /* the number of threads in subscribe and unsubscribe */
  uint32_t is_subscribed[NAME_COUNT];
  uint32_t is_refused[NAME_COUNT];
  multicast_broadcaster broadcaster;
  struct carrier *next; /* of `first` */
} carrier;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static carrier *first;
static int32_t alive;
static void (*carrier_body)(void);

void set_carrier_body(void (*body)(void)) { carrier_body = body; }

static void begin(carrier *c) {
  MUST(LOAD(c->state) == ALIVE, "a transport is called, state 0x%x", c->state);
  MUST(c->word == (uint32_t)(uintptr_t)c, "transport overwritten");
  ADD(c->inside, 1);
  ++actor_current()->releases; /* the thread must not end here */
}

static void end(carrier *c) {
  if (one_in(20)) sched_yield();
  carrier_body();
  --actor_current()->releases;
  MUST(LOAD(c->state) == ALIVE, "a transport ends in a call, state 0x%x", c->state);
  ADD(c->inside, -1);
}

static multicast_status publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size) {
  volatile unsigned char sum = 0;
  size_t i;
  begin(context);
  MUST(strlen(name) > 0, "a name");
  for (i = 0; i < size; ++i) sum = (unsigned char)(sum + ((const unsigned char *)payload)[i]);
  end(context);
  return MULTICAST_OK;
}

/* Expects that subscribe and unsubscribe are called alternately for each name, and never at the
 * same time. This does not hold in the child of a fork, which may receive a notification that a
 * thread of the parent was making at the moment of the fork. */
static void note(carrier *c, const char *name, uint32_t is_wanted) {
  int number = number_of_name(name);
  bool is_parent = c->process == getpid();
  MUST(ADD(c->notifying[number], 1) == 1 || !is_parent, "two threads tell of a name");
  MUST(LOAD(c->is_subscribed[number]) != is_wanted || !is_parent, "a transport is told twice: %u",
       is_wanted);
  STORE(c->is_subscribed[number], is_wanted);
  ADD(c->notifying[number], -1);
}

static multicast_status subscribe(void *context, const char *name) {
  bool is_refused = one_in(16);
  carrier *c = context;
  begin(c);
  if (!is_refused) note(c, name, 1);
  STORE(c->is_refused[number_of_name(name)], is_refused);
  end(c);
  return is_refused ? MULTICAST_ERROR_STATE : MULTICAST_OK;
}

static void unsubscribe(void *context, const char *name) {
  begin(context);
  note(context, name, 0);
  end(context);
}

static void release(void *context) {
  carrier *c = context, **place;
  uint32_t was = ALIVE;
  MUST(LOAD(c->inside) == 0 || c->process != getpid(), "calls at the end of a transport: %d",
       c->inside);
  MUST(CHANGE(c->state, &was, ENDED), "a transport ends twice, state 0x%x", was);
  c->word = ENDED;
  if (c->process != getpid()) return;
  ADD(alive, -1);
  pthread_mutex_lock(&mutex);
  for (place = &first; *place != c;) place = &(*place)->next;
  *place = c->next;
  pthread_mutex_unlock(&mutex);
  keep_for_a_while(c, sizeof *c);
}

multicast_transport carrier_make(multicast_broadcaster b) {
  multicast_transport transport = multicast_transport_default();
  carrier *c = calloc(1, sizeof *c);
  MUST(c != NULL, "memory");
  c->state = ALIVE;
  c->word = (uint32_t)(uintptr_t)c;
  c->process = getpid();
  c->broadcaster = b;
  ADD(alive, 1);
  pthread_mutex_lock(&mutex);
  c->next = first;
  first = c;
  pthread_mutex_unlock(&mutex);
  transport.context = c;
  transport.publish = publish;
  transport.subscribe = subscribe;
  transport.unsubscribe = unsubscribe;
  transport.release = release;
  return transport;
}

void carriers_check(void) {
  const carrier *c;
  for (c = first; c != NULL; c = c->next) {
    for (int i = 0; i < NAME_COUNT; ++i) {
      multicast m = multicast_broadcaster_multicast(c->broadcaster, name_of(i));
      bool is_wanted = multicast_count(m) > 0;
      MUST(LOAD(c->is_subscribed[i]) == is_wanted || (is_wanted && LOAD(c->is_refused[i])),
           "a transport knows of observers: %d, but there are some: %d", c->is_subscribed[i],
           is_wanted);
    }
  }
}

void carriers_end(void) { MUST(LOAD(alive) == 0, "transports that were not released: %d", alive); }
