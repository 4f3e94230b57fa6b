#define _GNU_SOURCE
#include "borrowed.h"

#include <pthread.h>
#include <stdlib.h>

#include "actor.h"
#include "atomics.h"
#include "failure.h"
#include "statuses.h"
#include "world.h"

static pthread_mutex_t left_mutex = PTHREAD_MUTEX_INITIALIZER;
static borrowed *left_behind, *in_doubt;
static int64_t doubts;

int64_t borrowed_in_doubt(void) { return LOAD(doubts); }

void borrowed_add(multicast target, multicast_queue queue, multicast_lifetime lifetime) {
  actor *a = actor_current();
  context *c = context_make_borrowed();
  borrowed *b = calloc(1, sizeof *b);
  bool has_options = one_in(2);
  multicast_status status;
  MUST(b != NULL, "memory");
  b->context = c;
  b->target = target;
  if (has_options) {
    c->options.queue = queue;
    c->options.lifetime = lifetime;
  } else {
    c->options.priority = 0;
  }
  status = multicast_add(target, context_delegate(c), has_options ? &c->options : NULL, &c->token);
  EXPECT(status, OK | INVALID_HANDLE);
  if (status != MULTICAST_OK) {
    MUST(c->token.id == 0, "token of a failed add");
    context_end(c);
    free(b);
    return;
  }
  b->next = a->borrowed;
  a->borrowed = b;
}

void borrowed_remove(void) {
  actor *a = actor_current();
  borrowed *b = a->borrowed;
  multicast_status status;
  if (b == NULL) return;
  a->borrowed = b->next;
  if (one_in(3)) {
    status = multicast_remove(b->target, context_delegate(b->context));
    EXPECT(status, OK | PENDING | INVALID_HANDLE | NOT_FOUND);
  } else if (one_in(3)) {
    status = multicast_token_remove_within(b->context->token, random_below(100000));
    EXPECT(status, OK | PENDING | INVALID_HANDLE | TIMEOUT);
  } else {
    status = multicast_token_remove(b->context->token);
    EXPECT(status, OK | PENDING | INVALID_HANDLE);
  }
  /* If another thread has removed the registration without waiting, this second removal waits for
   * the registration's calls. */
  if (status != MULTICAST_OK && waits_for_certain()) {
    MUST(status != MULTICAST_PENDING, "PENDING outside all calls, in a calm round");
    EXPECT(multicast_token_remove(b->context->token), INVALID_HANDLE);
    status = MULTICAST_OK;
  }
  if (status == MULTICAST_OK) {
    token_is_finished(b->context->token);
    context_end(b->context);
    free(b);
    return;
  }
  ADD(doubts, 1);
  pthread_mutex_lock(&left_mutex);
  b->next = in_doubt;
  in_doubt = b;
  pthread_mutex_unlock(&left_mutex);
}

void borrowed_leave_behind(borrowed **own) {
  borrowed *b = *own;
  *own = NULL;
  if (b == NULL) return;
  pthread_mutex_lock(&left_mutex);
  while (b != NULL) {
    borrowed *next = b->next;
    b->next = left_behind;
    left_behind = b;
    b = next;
  }
  pthread_mutex_unlock(&left_mutex);
}

void borrowed_take_over(bool in_doubt_too) {
  actor *a = actor_current();
  pthread_mutex_lock(&left_mutex);
  borrowed *b = left_behind;
  if (b != NULL) {
    left_behind = b->next;
  } else if (in_doubt_too && in_doubt != NULL) {
    b = in_doubt;
    in_doubt = b->next;
    ADD(doubts, -1);
  }
  pthread_mutex_unlock(&left_mutex);
  if (b == NULL) return;
  b->next = a->borrowed;
  a->borrowed = b;
}
