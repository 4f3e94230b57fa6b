#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- References ------------------------------------------------------------------------------ */

bool client_is_in_child(const client *c) { return c->fork_count != process_forks(); }

void client_retain(client *c) { __atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED); }

bool client_drop(client *c) {
  return __atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) == 0;
}

void client_release(client *c) {
  if (client_drop(c)) client_free(c);
}

void client_free(client *c) {
  if (c->wakeup >= 0) close(c->wakeup);
  /* In the child of a fork they may be half changed. */
  if (!client_is_in_child(c)) {
    outbox_free(&c->outbox);
    blocks_free(&c->blocks);
    names_free(&c->names);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
  drops_release(c->drops);
  c->engine->free(c);
  if (c->settings.release != NULL) c->settings.release(c->settings.context);
  free(c);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

bool client_is_stopping(client *c) {
  bool is_stopping;
  pthread_mutex_lock(&c->lock);
  is_stopping = c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return is_stopping;
}

void client_wake(client *c) {
  if (c->is_asleep) eventfd_write(c->wakeup, 1);
  c->is_asleep = false;
}

static void free_blocks(client *c) {
  blocks all;
  pthread_mutex_lock(&c->lock);
  all = c->blocks;
  c->blocks.first = NULL;
  pthread_mutex_unlock(&c->lock);
  blocks_free(&all);
}

void client_poll(client *c, struct pollfd *socket, bool has_work, int timeout_ms) {
  struct pollfd watched[2] = {{c->wakeup, POLLIN, 0}, *socket};
  eventfd_t ignored;
  int events;
  c->is_asleep = !has_work;
  pthread_mutex_unlock(&c->lock);
  events = poll(watched, 2, has_work ? 0 : timeout_ms);
  if (events < 0) watched[0].revents = watched[1].revents = 0;
  pthread_mutex_lock(&c->lock);
  c->is_asleep = false;
  pthread_mutex_unlock(&c->lock);
  if ((watched[0].revents & POLLIN) != 0) eventfd_read(c->wakeup, &ignored);
  socket->revents = watched[1].revents;
  if (events == 0 && !has_work) free_blocks(c);
}

bool client_wait_until(client *c, uint64_t deadline) {
  const struct timespec until = time_of_ns(deadline);
  return pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT;
}

/* ---- Callers' functions ---------------------------------------------------------------------- */

bool client_go_away(client *c) {
  bool may_go;
  pthread_mutex_lock(&c->lock);
  may_go = c->is_away = !c->is_stopping;
  pthread_mutex_unlock(&c->lock);
  return may_go;
}

void client_come_back(client *c) {
  pthread_mutex_lock(&c->lock);
  c->is_away = false;
  pthread_mutex_unlock(&c->lock);
}

void client_end_in_child(unsigned forks) {
  if (process_forks() != forks) pthread_exit(NULL);
}

void client_tell(client *c, uint32_t state, int32_t code, const char *reason) {
  const unsigned forks = process_forks();
  if (c->settings.changed == NULL || !client_go_away(c)) return;
  c->settings.changed(c->settings.context, state, code, reason);
  client_end_in_child(forks);
  client_come_back(c);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Waits before another try, and up to a quarter less: clients that were disconnected at once do not
 * come back at once. */
static void back_off(client *c) {
  uint64_t delay = c->settings.reconnect_min_ns, most = c->settings.reconnect_max_ns, random = 0;
  unsigned i;
  /* A connection that ends soon after it was accepted counts as refused: so two clients with one
   * identifier do not take it from each other without a pause. */
  if (c->connected_at != 0 && now_ns() - c->connected_at > ns_of_second) c->failures = 0;
  for (i = 0; i < c->failures && delay < most; ++i) delay *= 2;
  if (delay > most) delay = most;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random && delay >= 4)
    delay -= random % (delay / 4);
  delay += now_ns();
  pthread_mutex_lock(&c->lock);
  while (!c->is_stopping && client_wait_until(c, delay)) {
  }
  pthread_mutex_unlock(&c->lock);
  if (c->failures < 64) ++c->failures;
}

static void *run(void *argument) {
  client *c = argument;
  while (!client_is_stopping(c)) {
    c->connected_at = 0;
    if (!c->engine->run(c)) back_off(c);
  }
  c->engine->end(c);
  pthread_mutex_lock(&c->lock);
  client_free_arrivals(c);
  c->is_done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  client_release(c);
  return NULL;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static client *create(const engine *e, const settings *s) {
  pthread_condattr_t attributes;
  client *c = calloc(1, e->size);
  if (c == NULL || pthread_condattr_init(&attributes) != 0) {
    free(c);
    return NULL;
  }
  c->engine = e;
  c->settings = *s;
  c->settings.release = NULL;
  c->references = 1;
  c->wakeup = -1;
  c->fork_count = process_forks();
  pthread_mutex_init(&c->lock, NULL);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&c->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  return c;
}

static multicast_status start_thread(client *c) {
  int result;
  client_retain(c);
  /* Under the lock, so that the thread finds itself written down. */
  pthread_mutex_lock(&c->lock);
  result = process_start_thread(&c->thread, run, c);
  if (result == 0) pthread_setname_np(c->thread, c->engine->thread_name);
  pthread_mutex_unlock(&c->lock);
  if (result == 0) return MULTICAST_OK;
  client_release(c);
  return result == ENOMEM ? MULTICAST_ERROR_OUT_OF_MEMORY : MULTICAST_ERROR_SYSTEM;
}

static multicast_status begin(client *c, const settings *s, multicast_transport *out) {
  multicast_status status;
  c->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->wakeup < 0) return MULTICAST_ERROR_SYSTEM;
  status = client_create_inbox(c);
  if (status != MULTICAST_OK) return status;
  status = MULTICAST_ERROR_LIMIT;
  if (clients_add(c)) {
    /* Before the thread: what it calls may use these. */
    *out = client_transport(c);
    c->settings.release = s->release;
    status = start_thread(c);
    if (status == MULTICAST_OK) return status;
    c->settings.release = NULL;
    clients_remove(c);
    memset(out, 0, sizeof *out);
  }
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  return status;
}

multicast_status client_connect(const engine *e, settings *s, const void *options,
                                multicast_transport *out) {
  multicast_status status;
  client *c;
  if (!process_start(e->start)) return MULTICAST_ERROR_SYSTEM;
  status = settings_complete(s, e->default_payload, e->largest_payload);
  if (status != MULTICAST_OK) return status;
  c = create(e, s);
  if (c == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  status = e->prepare(c, options);
  if (status == MULTICAST_OK) status = begin(c, s, out);
  if (status != MULTICAST_OK) client_release(c);
  return status;
}

void client_stop(client *c) {
  pthread_mutex_lock(&c->lock);
  __atomic_store_n(&c->is_stopping, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&c->changed);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  /* It may wait for room in the queue. */
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  pthread_mutex_lock(&c->lock);
  /* Going away needs the lock, so a thread that is not away will end soon. */
  while (!c->is_done && !c->is_away && !pthread_equal(pthread_self(), c->thread))
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}
