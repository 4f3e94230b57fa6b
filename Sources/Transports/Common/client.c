#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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

static void drop_answerers(const names *all) {
  const known_name *name;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name))
    answerer_drop(name->answerer);
}

void client_free(client *c) {
  if (c->wakeup >= 0) close(c->wakeup);
  /* The child of a fork does not free these objects, because another thread of the parent may have
   * been changing them. */
  if (!client_is_in_child(c)) {
    outbox_free(&c->outbox);
    blocks_free(&c->blocks);
    names_free(&c->names);
    drop_answerers(&c->answered);
    names_free(&c->answered);
    names_free(&c->prefixes);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
  drops_release(c->drops);
  c->engine->free(c);
  if (c->settings.release != NULL) c->settings.release(c->settings.context);
  free(c);
}

/* ---- Names ----------------------------------------------------------------------------------- */

size_t client_write_filter(const client *c, char *address, const names *all, const char *name) {
  const engine *e = c->engine;
  if (name[0] == '\0') return (size_t)(stpcpy(address, c->return_address) - address);
  return coding_write_all(all == &c->names ? e->coding : e->questions, address, c->settings.prefix,
                          name);
}

names *client_changed(client *c) {
  names *all[] = {&c->names, &c->answered, &c->prefixes}, *oldest = NULL;
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    const known_name *first = all[i]->first_change;
    if (first != NULL && (oldest == NULL || first->change < oldest->first_change->change))
      oldest = all[i];
  }
  return oldest;
}

multicast_status client_want(client *c, names *all, const char *name, bool is_wanted) {
  const known_name *known = names_find(all, name);
  const bool is_new = is_wanted && (known == NULL || !known->is_wanted);
  if (is_new && c->engine->most_names > 0 &&
      c->names.wanted + c->answered.wanted + c->prefixes.wanted >= c->engine->most_names)
    return MULTICAST_ERROR_LIMIT;
  return names_want(all, name, is_wanted, ++c->changes) ? MULTICAST_OK
                                                        : MULTICAST_ERROR_OUT_OF_MEMORY;
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

void client_free_blocks(client *c) {
  blocks all;
  pthread_mutex_lock(&c->lock);
  all = c->blocks;
  c->blocks = (blocks){NULL, NULL, 0};
  pthread_mutex_unlock(&c->lock);
  blocks_free(&all);
}

void client_poll(client *c, struct pollfd *socket, bool has_work, int timeout_ms) {
  struct pollfd watched[2] = {{c->wakeup, POLLIN, 0}, *socket};
  eventfd_t ignored;
  bool has_many;
  int events;
  c->is_asleep = !has_work;
  pthread_mutex_unlock(&c->lock);
  events = poll(watched, 2, has_work ? 0 : timeout_ms);
  if (events < 0) watched[0].revents = watched[1].revents = 0;
  pthread_mutex_lock(&c->lock);
  c->is_asleep = false;
  has_many = c->blocks.count > BLOCKS_KEPT;
  pthread_mutex_unlock(&c->lock);
  if ((watched[0].revents & POLLIN) != 0) eventfd_read(c->wakeup, &ignored);
  socket->revents = watched[1].revents;
  if (has_many || (events == 0 && !has_work)) client_free_blocks(c);
}

bool client_wait_until(client *c, uint64_t deadline) {
  const struct timespec until = time_of_ns(deadline);
  return pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT;
}

void client_wait_for_answer(client *c, inquiry *i, uint64_t deadline) {
  const struct timespec until = time_of_ns(deadline);
  pthread_cond_timedwait(&i->changed, &c->lock, &until);
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

void client_drop_publications(client *c, uint64_t first, uint64_t count) {
  flushing *f;
  if (count == 0) return;
  c->counts.dropped += count;
  for (f = c->flushing; f != NULL; f = f->next) f->has_lost = f->has_lost || first <= f->ticket;
  pthread_cond_broadcast(&c->changed); /* for flushes */
}

/* ---- The end --------------------------------------------------------------------------------- */

void client_stop(client *c) {
  pthread_mutex_lock(&c->lock);
  __atomic_store_n(&c->is_stopping, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&c->changed);
  inquiries_wake(&c->inquiries);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  /* If the client's thread is waiting for room in the queue, this call ends its wait. */
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  pthread_mutex_lock(&c->lock);
  /* Do not wait for a thread that is away. A thread that is not away will end soon, because
   * client_go_away() fails once `is_stopping` is set. */
  while (!c->is_done && !c->is_away && !pthread_equal(pthread_self(), c->thread))
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}
