#include "peer.h"

#include "descriptors.h"
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE_MAX = 64 };

/* ---- The list -------------------------------------------------------------------------------- */

/* Asks the system whether the process at the other end belongs to this user. */
static bool is_of_user(int socket, pid_t *pid) {
  struct ucred who;
  socklen_t size = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid())
    return false;
  *pid = who.pid;
  return true;
}

bool peer_watch(const local_client *c, peer *p) {
  struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = p};
  if (!p->is_held) event.events |= EPOLLIN;
  if (p->has_more) event.events |= EPOLLOUT;
  if (event.events == p->watched) return true;
  if (epoll_ctl(c->poller, p->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, p->socket, &event) != 0)
    return false;
  p->watched = event.events;
  return true;
}

/* A child created without the fork handlers may have inherited the socket. If a child has inherited
 * it, close() alone ends neither the epoll registration nor the connection. */
static void close_socket(const local_client *c, int socket) {
  epoll_ctl(c->poller, EPOLL_CTL_DEL, socket, NULL);
  shutdown(socket, SHUT_RDWR);
  descriptor_close(socket);
}

/* Called under the lock. Assigns a place to a peer. For the new peer, the client's ring begins at
 * the current head. If the peer joined the group earlier than this client, publications are kept
 * for the peer until it has announced its names. This may take a long time if the peer's thread is
 * running an observer. Publications need not be kept for a peer that joined later, because that
 * peer can call flush to wait until this client knows its names. */
static bool take_place(local_client *c, peer *p) {
  const bool is_unknown = p->file[0] != '\0';
  slot *s;
  while (p->place < PEERS_MAX && c->at[p->place] != NULL) ++p->place;
  if (p->place == PEERS_MAX) return false;
  p->number = ++c->peer_numbers;
  p->start = p->tail = p->first = p->last = c->head;
  s = &c->memory.board->slots[p->place];
  __atomic_store_n(&s->begin, c->head, __ATOMIC_RELEASE); /* order: shown */
  __atomic_store_n(&s->dropped[0], 0, __ATOMIC_RELAXED);
  __atomic_store_n(&s->dropped[1], 0, __ATOMIC_RELAXED);
  __atomic_store_n(&s->known, is_unknown ? UINT64_MAX : c->head, __ATOMIC_RELAXED);
  if (is_unknown) places_add(&c->unknown, p->place);
  c->at[p->place] = p;
  p->next = c->peers;
  c->peers = p;
  return true;
}

peer *peer_add(local_client *c, int socket, const char *file) {
  peer *p = calloc(1, sizeof *p);
  bool is_added = false;
  if (p != NULL) {
    p->socket = socket;
    strcpy(p->file, file);
    for (int i = 0; i < LISTS; ++i) p->untold[i] = c->lists[i].first;
    p->owes_sync = true;
    p->known_from = UINT64_MAX;
    if (is_of_user(socket, &p->pid) && peer_watch(c, p)) {
      pthread_mutex_lock(&c->base.lock);
      is_added = take_place(c, p);
      pthread_mutex_unlock(&c->base.lock);
    }
  }
  if (is_added) return p;
  close_socket(c, socket);
  free(p);
  return NULL;
}

bool peer_reconnect(local_client *c, peer *p) {
  const int socket = group_reach(&c->group, p->file);
  if (socket < 0) return false;
  close_socket(c, p->socket);
  pthread_mutex_lock(&c->base.lock);
  p->socket = socket;
  p->is_over = false;
  pthread_mutex_unlock(&c->base.lock);
  p->watched = 0;
  p->has_ended = p->has_hello = false;
  return true;
}

/* Called under the lock. Removes a peer from each topic's `offered_to`, because the peer has
 * announced its names or has gone. If `is_gone` is true, also removes the peer from the other
 * sets. */
static void leave_topics(names *all, const peer *p, bool is_gone) {
  known_name *name, *next;
  for (name = names_next(all, NULL); name != NULL; name = next) {
    topic *t = name->subscription;
    next = names_next(all, name);
    if (t == NULL) continue;
    places_remove(&t->offered_to, p->place);
    if (is_gone) {
      places_remove(&t->wanted_by, p->place);
      places_remove(&t->told_to, p->place);
    }
    topic_drop(all, t);
  }
}

void peer_remove(local_client *c, peer *p) {
  peer **place = &c->peers;
  pthread_mutex_lock(&c->base.lock);
  while (*place != p) place = &(*place)->next;
  *place = p->next;
  c->at[p->place] = NULL;
  places_remove(&c->unknown, p->place);
  places_remove(&c->offering, p->place);
  leave_topics(&c->base.names, p, true);
  leave_topics(&c->base.answered, p, true);
  leave_topics(&c->base.prefixes, p, true);
  pthread_cond_broadcast(&c->base.changed); /* for flushes */
  pthread_mutex_unlock(&c->base.lock);
  close_socket(c, p->socket);
  memory_close(&p->memory);
  free(p);
}

/* ---- Messages to a peer ---------------------------------------------------------------------- */

/* Removes a topic from its list, so that its last change is not announced to any more peers. */
static void unlist(local_client *c, topic *t) {
  topic_list *list = t->list;
  peer *p;
  for (p = c->peers; p != NULL; p = p->next) {
    topic **untold = &p->untold[list - c->lists];
    if (*untold == t) *untold = t->next;
  }
  *(t->previous == NULL ? &list->first : &t->previous->next) = t->next;
  *(t->next == NULL ? &list->last : &t->next->previous) = t->previous;
  t->list = NULL;
  --list->count;
}

/* Called under the lock. Moves a topic to the end of one of the lists, so that its change is
 * announced to all peers. */
static void list_last(local_client *c, topic *t) {
  const int which = t->name->is_wanted ? WANTED : UNWANTED;
  topic_list *list = &c->lists[which];
  peer *p;
  if (t->list != NULL) unlist(c, t);
  t->list = list;
  ++list->count;
  t->listing = ++c->listings;
  t->previous = list->last;
  t->next = NULL;
  *(list->last == NULL ? &list->first : &list->last->next) = t;
  list->last = t;
  for (p = c->peers; p != NULL; p = p->next) {
    if (p->untold[which] == NULL) p->untold[which] = t;
    p->owes_sync = true;
  }
}

/* Called under the lock. */
static void note_name(local_client *c, names *all) {
  known_name *name = names_take_change(all);
  topic *t = topic_make(all, name->text);
  if (t != NULL) {
    t->all = all;
    list_last(c, t);
  } else {
    names_change(all, name);
    c->is_short = true;
  }
}

/* Returns the `listing` of the first unwanted topic that has not been announced to all peers, or
 * UINT64_MAX if there is none. Ignores peers whose hello has not arrived, because nothing has been
 * announced to them yet. */
static uint64_t first_untold(const local_client *c) {
  uint64_t first = UINT64_MAX;
  const peer *p;
  for (p = c->peers; p != NULL; p = p->next) {
    const topic *t = p->untold[UNWANTED];
    if (p->is_met && t != NULL && t->listing < first) first = t->listing;
  }
  return first;
}

void peers_note_names(local_client *c) {
  names *all;
  pthread_mutex_lock(&c->base.lock);
  c->is_short = false;
  while (!c->is_short && (all = client_changed(&c->base)) != NULL) note_name(c, all);
  if (!c->is_short) c->told = client_changes(&c->base);
  pthread_mutex_unlock(&c->base.lock);
}

/* Removes unwanted topics from their list once they have been announced to all peers, because they
 * need not be announced to later peers. */
void peers_forget_names(local_client *c) {
  const uint64_t first = first_untold(c);
  topic *t = c->lists[UNWANTED].first, *next;
  if (t == NULL) return;
  pthread_mutex_lock(&c->base.lock);
  for (; t != NULL && t->listing < first; t = next) {
    next = t->next;
    unlist(c, t);
    topic_drop(t->all, t);
  }
  pthread_mutex_unlock(&c->base.lock);
}

/* Sends a message. Returns whether the socket has accepted the message. Does not check whether the
 * connection has ended, which is detected when the socket is read. */
static bool say(peer *p, message_kind kind, uint32_t place, uint64_t number, const char *text,
                int file) {
  const int error = message_send(p->socket, kind, place, number, text, file);
  p->has_more = error != 0 && error != EPIPE && error != ECONNRESET;
  return error == 0;
}

/* Returns the kind of a name in a message: 0 for a name with observers, 1 for a name with an
 * answerer, and 2 for a prefix. */
static uint32_t kind_of(const local_client *c, const topic *t) {
  return t->all == &c->base.names ? 0 : t->all == &c->base.answered ? 1 : 2;
}

/* Announces the name of a topic. Skips a name that has changed again, unless it is unwanted before
 * and after the change, because its topic will be appended to a list again. If a wanted name were
 * announced both now and later, the peer would send the name's retained values twice. */
static bool say_name(local_client *c, peer *p, topic *t) {
  const bool is_wanted = t->list == &c->lists[WANTED];
  bool is_skipped;
  pthread_mutex_lock(&c->base.lock);
  is_skipped = t->name->is_changed && (is_wanted || t->name->is_wanted);
  pthread_mutex_unlock(&c->base.lock);
  if (is_skipped) return true;
  if (!say(p, is_wanted ? MESSAGE_WANT : MESSAGE_UNWANT, kind_of(c, t), 0, t->name->text, -1))
    return false;
  if (is_wanted && !p->is_told) places_add(&t->told_to, p->place);
  return true;
}

/* Returns the list whose first untold topic is announced next to the peer. Topics are announced in
 * the order of their last change. However, if there are more than NAMES_MAX unwanted topics, they
 * are announced first. Otherwise, a peer that reads slowly could count too many removed names in
 * addition to the wanted names, and would disconnect this client. */
static int next_list(const local_client *c, const peer *p) {
  const topic *unwanted = p->untold[UNWANTED], *wanted = p->untold[WANTED];
  if (unwanted == NULL || wanted == NULL) return wanted == NULL ? UNWANTED : WANTED;
  return c->lists[UNWANTED].count > NAMES_MAX || unwanted->listing < wanted->listing ? UNWANTED
                                                                                     : WANTED;
}

/* Sends all pending messages. Sends names only after the peer's hello has arrived, because the
 * hello contains the position where the peer's ring begins. */
static bool tell(local_client *c, peer *p) {
  topic **next = &p->untold[next_list(c, p)];
  if (!p->has_hello) {
    p->has_hello = say(p, MESSAGE_HELLO, p->place, p->start, c->options.name, c->memory_file);
    if (p->has_hello || p->greeted_at == 0) p->greeted_at = now_ns();
  }
  if (!p->has_hello || !p->is_met) return p->has_hello;
  for (; *next != NULL; next = &p->untold[next_list(c, p)]) {
    if (!say_name(c, p, *next)) return false;
    *next = (*next)->next;
  }
  if (p->owes_sync && !say(p, MESSAGE_SYNC, 0, c->told, NULL, -1)) return false;
  p->is_told = true;
  p->owes_sync = false;
  if (p->owes_done && !say(p, MESSAGE_DONE, 0, p->done, NULL, -1)) return false;
  p->owes_done = false;
  return true;
}

void peer_tell(local_client *c, peer *p) {
  p->has_more = false;
  tell(c, p);
}

/* ---- Messages from a peer -------------------------------------------------------------------- */

/* Copies a name, and replaces control characters, because programs may print the name. */
static void copy_name(char *to, const char *name) {
  for (; *name != '\0'; ++name) {
    const bool is_control = (unsigned char)*name < 0x20 || *name == 0x7f;
    *to++ = (char)(is_control ? '?' : *name);
  }
  *to = '\0';
}

static bool heed_hello(local_client *c, peer *p, const message *m, int file) {
  memory its = {NULL, NULL, 0};
  const int error = p->is_met ? EINVAL : memory_open(&its, file);
  p->is_heard = true;
  if (error != 0) {
    p->has_ended = true; /* without memory or descriptors; the peer will be reconnected */
    return error != EINVAL;
  }
  p->position = p->told_tail = m->number;
  /* store_tail() in reader.c explains the release order. The peer ignores this tail until it has
   * received this client's first message about names (see ring_look()). */
  /* order: tail */
  __atomic_store_n(&c->memory.board->slots[p->place].tail, m->number, __ATOMIC_RELEASE);
  pthread_mutex_lock(&c->base.lock);
  p->memory = its;
  p->place_there = m->place;
  copy_name(p->name, m->text);
  p->is_met = true;
  ++c->joined;
  pthread_mutex_unlock(&c->base.lock);
  client_tell(&c->base, MULTICAST_LOCAL_JOINED, p->pid, p->name);
  return true;
}

/* Called under the lock. Writes the retained values of a topic to the ring, for one peer. Returns
 * false if there is no room. */
static bool give_kept(local_client *c, const topic *t, const peer *p) {
  const bool may_drop = c->options.overflow == MULTICAST_OVERFLOW_DROP_OLDEST;
  places only = {{0, 0}};
  if (!ring_make_room(c, topic_kept(t, NULL), may_drop)) return false;
  places_add(&only, p->place);
  ring_write_kept(c, t, NULL, &only);
  ring_show(c, &only);
  return true;
}

/* Called under the lock for a name that the peer wants. A peer that has not announced all its names
 * yet does not read the ring, so get_to_know() will send the retained values later. */
static bool want(local_client *c, peer *p, names *all, const char *text) {
  topic *t = topic_make(all, text);
  if (t == NULL) return false;
  /* This client may already know that the peer wants the name. A peer that removes its last
   * observer and soon registers a new one need not announce the removal. */
  p->names += !places_have(&t->wanted_by, p->place);
  places_remove(&t->wanted_by, p->place);
  if (places_have(&c->unknown, p->place) || give_kept(c, t, p)) {
    places_add(&t->wanted_by, p->place);
    return true;
  }
  --p->names;
  topic_drop(all, t);
  return false;
}

/* Called under the lock for a name that the peer no longer wants. */
static void unwant(peer *p, names *all, const char *text) {
  topic *t = topic_find(all, text);
  if (t == NULL) return;
  p->names -= places_have(&t->wanted_by, p->place);
  places_remove(&t->wanted_by, p->place);
  topic_drop(all, t);
}

/* Returns whether the peer has observers of a name or of one of its prefixes, other than the prefix
 * `except`. Called under the lock. */
static bool is_wanted_by(const local_client *c, const topic *t, const peer *p,
                         const known_name *except) {
  const known_name *prefix = NULL;
  bool is_wanted = places_have(&t->wanted_by, p->place);
  while (!is_wanted &&
         (prefix = names_next_prefix(&c->base.prefixes, prefix, t->name->text)) != NULL) {
    const topic *its = prefix->subscription;
    is_wanted = prefix != except && its != NULL && places_have(&its->wanted_by, p->place);
  }
  return is_wanted;
}

/* Called under the lock when the ring has no room for some of the retained values for a prefix that
 * the peer has announced. Until the values have been sent, publications of the names that the peer
 * wants because of this prefix are preceded by the names' retained values (see find_addressees()).
 * This does not apply to names that the peer already wanted, whatever their prefixes. */
static void begin_offering(local_client *c, const peer *p, const known_name *prefix) {
  const known_name *name = names_next(&c->base.names, NULL);
  if (places_have(&c->offering, p->place)) return;
  for (; name != NULL; name = names_next(&c->base.names, name)) {
    topic *t = name->subscription;
    if (t != NULL && is_wanted_by(c, t, p, prefix)) places_add(&t->offered_to, p->place);
  }
  places_add(&c->offering, p->place);
}

/* Sends the retained values of all names that the peer wants, or, if `prefix` is not NULL, of all
 * names that the peer wants only because of this prefix. Skips names whose `offered_to` contains
 * the peer. Returns false if the ring currently has no room for some of the values. Called under
 * the lock. */
static bool give_kept_of_wanted(local_client *c, const peer *p, const known_name *prefix) {
  const known_name *name = names_next(&c->base.names, NULL);
  for (; name != NULL; name = names_next(&c->base.names, name)) {
    topic *t = name->subscription;
    if (t == NULL || t->values == NULL || places_have(&t->offered_to, p->place) ||
        (prefix != NULL && !names_begins_with(name->text, prefix)) ||
        is_wanted_by(c, t, p, prefix) != (prefix == NULL))
      continue;
    if (!give_kept(c, t, p)) {
      if (prefix != NULL) begin_offering(c, p, prefix);
      return false;
    }
    places_add(&t->offered_to, p->place);
  }
  places_remove(&c->offering, p->place);
  leave_topics(&c->base.names, p, false);
  return true;
}

/* Processes the announcement of a name. Returns false if there is currently no room or memory. */
static bool heed_name(local_client *c, peer *p, const message *m) {
  names *const tables[] = {&c->base.names, &c->base.answered, &c->base.prefixes};
  names *all = tables[m->place];
  bool is_heeded = true;
  pthread_mutex_lock(&c->base.lock);
  p->has_tail = true;
  if (m->kind == MESSAGE_WANT)
    is_heeded = want(c, p, all, m->text) &&
                (all != &c->base.prefixes || places_have(&c->unknown, p->place) ||
                 give_kept_of_wanted(c, p, names_find(all, m->text)));
  else unwant(p, all, m->text);
  pthread_mutex_unlock(&c->base.lock);
  return is_heeded;
}

/* Called under the lock when the peer has announced all its names. After this function has
 * succeeded, only publications of the announced names are written for the peer. Returns false if
 * the ring currently has no room for the names' retained values. */
static bool get_to_know(local_client *c, peer *p) {
  if (!places_have(&c->unknown, p->place)) {
    p->is_known = true;
    return true;
  }
  if (!give_kept_of_wanted(c, p, NULL)) return false;
  places_remove(&c->unknown, p->place);
  /* Store `known` before storing a head that includes later entries, because was_unknown() in
   * reader.c relies on this order. */
  __atomic_store_n(&c->memory.board->slots[p->place].known, c->head, __ATOMIC_RELAXED);
  p->is_known = true;
  return true;
}

/* Processes MESSAGE_SYNC or MESSAGE_DONE. Returns false if the ring currently has no room. */
static bool heed_number(local_client *c, peer *p, const message *m) {
  bool is_heeded = true;
  pthread_mutex_lock(&c->base.lock);
  p->has_tail = true;
  if (m->kind == MESSAGE_SYNC) is_heeded = get_to_know(c, p);
  else p->confirmed = m->number;
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  if (m->kind != MESSAGE_SYNC || !is_heeded) return is_heeded;
  p->owes_done = true;
  p->done = m->number;
  return true;
}

/* Processes a message about names. Returns false if the message must be processed again later. */
static bool heed_names(local_client *c, peer *p, const message *m) {
  return m->kind == MESSAGE_WANT || m->kind == MESSAGE_UNWANT ? heed_name(c, p, m)
                                                              : heed_number(c, p, m);
}

/* Processes a message. Returns false if the message violates the protocol. */
static bool heed(local_client *c, peer *p, const message *m, int file) {
  if (m->kind == MESSAGE_HELLO) return heed_hello(c, p, m, file);
  if (!p->is_met) return false;
  if (m->kind == MESSAGE_WAKE) return true;
  p->is_held = !heed_names(c, p, m);
  if (p->is_held) p->held = *m;
  return p->names <= (size_t)2 * NAMES_MAX; /* a peer may announce removed names after new ones */
}

bool peer_hear(local_client *c, peer *p) {
  message m;
  int count, file;
  if (p->is_held) p->is_held = !heed_names(c, p, &p->held);
  for (count = 0; count < AT_ONCE_MAX && !p->is_held; ++count) {
    const receipt what = message_receive(p->socket, &m, &file);
    bool is_right = what == RECEIPT_MESSAGE;
    if (what == RECEIPT_NONE) break;
    if (what == RECEIPT_END) return false;
    if (is_right) is_right = heed(c, p, &m, file);
    if (file >= 0) close(file);
    if (!is_right) {
      pthread_mutex_lock(&c->base.lock);
      p->is_over = p->is_false = true;
      pthread_mutex_unlock(&c->base.lock);
      return false;
    }
    if (p->has_ended) return false;
    if (m.kind == MESSAGE_WAKE) break; /* usually the only message */
  }
  return true;
}
