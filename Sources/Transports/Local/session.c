/* The client's thread, which joins the group, reads the rings of peers, exchanges messages with the
 * peers, and sleeps. */

#include "session.h"

#include "../Common/transport.h"
#include "peer.h"
#include "question.h"
#include "reader.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef HELLO_NS
#define HELLO_NS 1000000000 /* a process must reply to this client's hello within this time */
#endif

enum {
  EVENTS_MAX = 64,
  /* The number of entries that the thread delivers from a ring before it reads the next ring. */
  ENTRIES_MAX = 1024,
  /* How long the thread may read rings before it polls the sockets. */
  READING_NS = 1000000,
  /* How long the thread polls the rings after the last entry before it sleeps. Waking a thread on
   * another processor takes about LOOKING_NS, so polling at most doubles the cost of a wake-up. */
  LOOKING_NS = 50000,
  SOON_MS = 1,
  IDLE_MS = 1000,
  PATIENCE_NS = 1000000000
};

/* ---- Reading --------------------------------------------------------------------------------- */

static void end_peer(local_client *c, peer *p, bool is_false) {
  pthread_mutex_lock(&c->base.lock);
  p->is_over = true;
  p->is_false = p->is_false || is_false;
  pthread_mutex_unlock(&c->base.lock);
  p->has_ended = true;
}

static bool has_entries(const peer *p) {
  return p->is_met && !p->has_ended &&
         __atomic_load_n(&p->memory.board->head, __ATOMIC_RELAXED) != p->position;
}

static void read_peer(local_client *c, peer *p, int most, int *total) {
  const int count = reader_read(c, p, most);
  if (count < 0) end_peer(c, p, true);
  else *total += count;
}

/* Reads up to ENTRIES_MAX entries of each ring. Returns the number of entries for this process. */
static int read_all(local_client *c) {
  peer *p = c->peers;
  int total = 0;
  while (p != NULL && !has_entries(p)) p = p->next;
  if (p == NULL || !client_go_away(&c->base)) return 0;
  for (; p != NULL; p = p->next) {
    if (has_entries(p)) read_peer(c, p, ENTRIES_MAX, &total);
  }
  client_come_back(&c->base);
  if (c->base.inbox.id != 0) client_deliver(&c->base, SIZE_MAX);
  return total;
}

/* Reads all rings once. Returns whether there were entries for this process. */
static bool read_some(local_client *c) {
  if (read_all(c) == 0) return false;
  c->arrived_at = now_ns();
  return true;
}

/* Returns whether an entry has arrived so recently that the thread should keep polling for more. */
static bool is_looking(const local_client *c) {
  return now_ns() - c->arrived_at < LOOKING_NS &&
         !__atomic_load_n(&c->base.is_stopping, __ATOMIC_RELAXED);
}

/* Reads until the rings have been empty for LOOKING_NS, but for at most READING_NS in total. Yields
 * between reads, because a peer that is about to reply may be waiting for this processor. Yielding
 * also lets the peers write several entries before the next read, which saves wake-ups. */
static void read_for_a_while(local_client *c) {
  const uint64_t end = now_ns() + READING_NS;
  do {
    if (read_some(c)) continue;
    if (!is_looking(c)) return;
    sched_yield();
  } while (now_ns() < end);
}

/* ---- Peers ----------------------------------------------------------------------------------- */

static void tell_of_peer(local_client *c, const peer *p, multicast_local_state state) {
  client_tell(&c->base, state, p->pid, p->name);
}

/* Tries to reconnect to a peer whose connection has ended, because the cause may have been a mere
 * shortage of memory or descriptors. Only the process that opened the connection reconnects.
 * Returns true if the old `peer` can be removed, because either there is a new connection or the
 * process no longer exists. If the result is false, the caller must try again. */
static bool reach_again(local_client *c, const peer *p) {
  const int s = group_reach(&c->group, p->file);
  if (s >= 0) return peer_add(c, s, p->file) != NULL;
  return errno == ECONNREFUSED || errno == ENOENT;
}

/* Returns whether to remove a peer whose connection has ended. If the peer has not sent its hello
 * and can be reconnected, the peer keeps its place and its entries in the ring. */
static bool has_gone(local_client *c, peer *p) {
  if (p->file[0] == '\0' || p->is_false) return true;
  if (!p->is_met) poll(NULL, 0, SOON_MS); /* there may still be no memory */
  if (p->is_heard) return reach_again(c, p);
  return !peer_reconnect(c, p) && (errno == ECONNREFUSED || errno == ENOENT);
}

/* Delivers the remaining entries of a peer that has ended, removes it, and reports its end. */
static void remove_peer(local_client *c, peer *p) {
  const bool is_false = p->is_false, is_met = p->is_met;
  const pid_t pid = p->pid;
  char name[NAME_SHOWN + 1];
  int count = 0;
  memcpy(name, p->name, sizeof name);
  if (is_met && !is_false && client_go_away(&c->base)) {
    read_peer(c, p, INT_MAX, &count);
    client_come_back(&c->base);
    if (c->base.inbox.id != 0) client_deliver(&c->base, SIZE_MAX);
  }
  questions_end(c, p); /* before the sweep, which may take a moment */
  if (p->lost > 0) tell_of_peer(c, p, MULTICAST_LOCAL_LOST);
  if (is_met && !is_false) group_sweep(&c->group, pid);
  peer_remove(c, p);
  pthread_mutex_lock(&c->base.lock);
  c->gone += is_met;
  c->expelled += is_false;
  pthread_mutex_unlock(&c->base.lock);
  if (is_false) client_tell(&c->base, MULTICAST_LOCAL_EXPELLED, pid, name);
  else if (is_met) client_tell(&c->base, MULTICAST_LOCAL_GONE, pid, name);
}

/* Returns whether a process has connected and has been greeted, but has not sent its hello. Such a
 * process must be disconnected after HELLO_NS, because otherwise it could occupy a place forever.
 * The hello may have arrived while this thread was running an observer, so is_silent() reads the
 * socket first. If the process is a real peer that was stopped for longer than HELLO_NS, it will
 * find its connection closed and reconnect in reach_again(). The program notices nothing, because
 * the arrival of the peer has not been reported yet. */
static bool may_be_silent(const peer *p) {
  return p->greeted_at != 0 && !p->is_met && p->file[0] == '\0' && !p->has_ended;
}

static bool is_silent(local_client *c, peer *p) {
  return may_be_silent(p) && now_ns() - p->greeted_at >= HELLO_NS &&
         (!peer_hear(c, p) || !p->is_met);
}

/* Does the pending work for all peers. Called between two sleeps. */
static void look_after_peers(local_client *c) {
  peer *p, *next;
  peers_note_names(c);
  for (p = c->peers; p != NULL; p = next) {
    next = p->next;
    if (!p->has_ended && p->is_held && !peer_hear(c, p)) p->has_ended = true;
    if (!p->has_ended && is_silent(c, p)) p->has_ended = true;
    if (!p->has_ended) peer_tell(c, p);
    if (!p->has_ended && !peer_watch(c, p)) c->is_short = true;
    if (p->lost > 0 && !p->has_ended) {
      p->lost = 0;
      tell_of_peer(c, p, MULTICAST_LOCAL_LOST);
    }
    if (p->has_ended || __atomic_load_n(&p->is_false, __ATOMIC_RELAXED)) {
      end_peer(c, p, false);
      if (has_gone(c, p)) remove_peer(c, p);
      else c->is_short = true;
    }
  }
  peers_forget_names(c);
}

static void accept_peers(local_client *c) {
  int s;
  while ((s = group_accept(&c->group)) >= 0)
    peer_add(c, s, "");
  /* If this process has no descriptors left, the connection stays pending, so wait a moment. */
  if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) poll(NULL, 0, SOON_MS);
}

/* ---- Sleeping -------------------------------------------------------------------------------- */

static void heed_event(local_client *c, const struct epoll_event *event) {
  peer *p = event->data.ptr;
  eventfd_t ignored;
  if (event->data.ptr == &c->base) {
    eventfd_read(c->base.wakeup, &ignored);
  } else if (event->data.ptr == &c->group) {
    accept_peers(c);
  } else if (!p->has_ended) {
    if ((event->events & EPOLLIN) != 0) p->has_ended = !peer_hear(c, p);
    /* EPOLLIN is missing if all messages have been read or if the socket is not being watched for
     * messages. */
    else if ((event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) p->has_ended = true;
    if (!p->has_ended && (event->events & EPOLLOUT) != 0) peer_tell(c, p);
  }
}

static void store_sleeps(local_client *c) {
  __atomic_store_n(&c->memory.board->sleeps, ++c->sleeps, __ATOMIC_RELAXED);
}

/* Returns the number of milliseconds until a time that is at most a second away. */
static int ms_until(uint64_t time) {
  const uint64_t now = now_ns();
  return time <= now ? 0 : (int)((time - now) / ns_of_millisecond) + 1;
}

static int shorter(int timeout, int other) { return other < timeout ? other : timeout; }

/* Returns the longest time for which the thread may sleep, in milliseconds. */
static int time_to_sleep(const local_client *c) {
  int timeout = c->is_short ? SOON_MS : IDLE_MS;
  const peer *p;
  if (!c->base.is_connected) timeout = shorter(timeout, ms_until(c->joined_at + PATIENCE_NS));
  for (p = c->peers; p != NULL; p = p->next) {
    if (p->is_held || p->is_behind) timeout = shorter(timeout, SOON_MS);
    if (may_be_silent(p)) timeout = shorter(timeout, ms_until(p->greeted_at + HELLO_NS));
  }
  return timeout;
}

/* Sleeps until a peer or another thread wakes this thread or until the timeout expires. */
static void go_to_sleep(local_client *c) {
  client *base = &c->base;
  struct epoll_event events[EVENTS_MAX];
  int timeout, count, i;
  bool has_work;
  const peer *p;
  store_sleeps(c);
  /* Pairs with the fence in ring_show(), so that either the peer sees that this thread is asleep,
   * or this thread sees the peer's new head. */
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* order: sleeping_peer */
  has_work = read_some(c) || is_looking(c);
  pthread_mutex_lock(&base->lock);
  for (p = c->peers; p != NULL; p = p->next)
    has_work = has_work || p->lost > 0 || ((p->has_ended || p->is_false) && !c->is_short);
  has_work = has_work || base->is_stopping || (client_changed(base) != NULL && !c->is_short);
  base->is_asleep = !has_work;
  pthread_mutex_unlock(&base->lock);
  timeout = time_to_sleep(c);
  count = epoll_wait(c->poller, events, EVENTS_MAX, has_work ? 0 : timeout);
  pthread_mutex_lock(&base->lock);
  base->is_asleep = false;
  pthread_mutex_unlock(&base->lock);
  store_sleeps(c);
  if (count > 0) read_some(c); /* before the messages, so that observers can reply sooner */
  for (i = 0; i < count; ++i) heed_event(c, &events[i]);
}

/* ---- The group ------------------------------------------------------------------------------- */

/* Adds a peer and sends the hello immediately, because the peer closes a silent connection after
 * HELLO_NS. */
static bool meet(void *context, int socket, const char *file) {
  peer *p = peer_add(context, socket, file);
  if (p != NULL) peer_tell(context, p);
  return p != NULL;
}

static void leave(local_client *c) {
  while (c->peers != NULL) peer_remove(c, c->peers);
  group_leave(&c->group, c->options.directory, c->options.group);
}

/* Adds the eventfd and the listening socket to epoll. An earlier attempt to join may already have
 * added the eventfd. */
static bool watch(const local_client *c) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)&c->base};
  if (epoll_ctl(c->poller, EPOLL_CTL_ADD, c->base.wakeup, &event) != 0 && errno != EEXIST)
    return false;
  event.data.ptr = (void *)(uintptr_t)&c->group;
  return epoll_ctl(c->poller, EPOLL_CTL_ADD, c->group.listener, &event) == 0;
}

static bool join(local_client *c) {
  trouble why = {0, NULL};
  bool is_in;
  if (!client_go_away(&c->base)) return false;
  is_in = group_enter(&c->group, c->options.directory, c->options.group, meet, c, &why);
  if (is_in && !watch(c)) {
    why = (trouble){errno, "the socket of the group cannot be watched"};
    is_in = false;
  }
  client_come_back(&c->base);
  c->joined_at = now_ns();
  if (is_in) return true;
  leave(c);
  client_tell(&c->base, MULTICAST_LOCAL_REFUSED, why.error, why.reason);
  return false;
}

/* Reports that the client is connected when all earlier members have announced their names. Waits
 * for at most PATIENCE_NS. A longer wait is not needed, because publications for members that have
 * not responded stay in the ring. */
static void tell_connected(local_client *c) {
  const peer *p = c->peers;
  if (c->base.is_connected) return; /* only this thread sets it */
  while (p != NULL && (p->is_known || p->file[0] == '\0')) p = p->next;
  if (p != NULL && now_ns() - c->joined_at < PATIENCE_NS) return;
  pthread_mutex_lock(&c->base.lock);
  c->base.is_connected = true;
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  client_tell(&c->base, MULTICAST_LOCAL_CONNECTED, 0, c->options.group);
}

bool session_run(client *base) {
  local_client *c = (local_client *)base;
  if (!join(c)) return false;
  while (!client_is_stopping(base)) {
    look_after_peers(c);
    tell_connected(c);
    read_for_a_while(c);
    go_to_sleep(c);
  }
  return true;
}

void session_end(client *base) {
  local_client *c = (local_client *)base;
  leave(c);
  pthread_mutex_lock(&base->lock);
  topics_free(&base->names);
  topics_free(&base->answered);
  topics_free(&base->prefixes);
  pthread_mutex_unlock(&base->lock);
}
