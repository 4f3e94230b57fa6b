/* What the files of libmulticast-local share. README.md describes them. */

#ifndef MULTICAST_LOCAL_LOCAL_H
#define MULTICAST_LOCAL_LOCAL_H

#include "../Common/client.h"
#include "board.h"
#include "group.h"
#include "message.h"

#include <multicast_local.h>

/* ---- Names ----------------------------------------------------------------------------------- */

/* The last publication of an event, for those who come late. */
typedef struct value {
  struct value *next;
  uint32_t event;
  size_t size;
  unsigned char payload[];
} value;

/* Who answers the questions of a name here. */
typedef struct answerer {
  struct answerer *next;
  int references; /* the topic's or the client's, and those of calls */
  void (*function)(void *context, const multicast_local_question *question, uint32_t event,
                   const void *payload, size_t size);
  void *context;
  void (*release)(void *context);
} answerer;

/* What is known of a name beside its observers here: the `subscription` of a known_name. A name
 * whose questions are answered has another one. */
typedef struct topic {
  const known_name *name;
  /* Under the lock. */
  places wanted_by; /* the peers that have observers of it, or answer its questions */
  value *values;
  answerer *answerer; /* NULL: none here */
  /* Only the thread uses these: names by their last change, all that had observers here. */
  struct topic *previous, *next;
  bool is_listed, is_of_questions;
} topic;

/* A question that waits for answers: see question.c. */
typedef struct inquiry inquiry;

/* ---- Peers ----------------------------------------------------------------------------------- */

typedef struct peer {
  struct peer *next;

  /* Not changed after it is in the list. */
  int socket;
  unsigned place;  /* here: its slot on the own board */
  uint64_t number; /* no other peer of the client has it */
  pid_t pid;
  char file[FILE_NAME_SIZE]; /* its socket, if it was this client that has connected; or empty */
  uint64_t start;            /* where the own ring begins for it */
  uint64_t added_at;

  /* Changed by the thread, under the lock, when the peer says hello. */
  bool is_met;
  memory memory;        /* what it shows */
  unsigned place_there; /* this client's slot on the peer's board */
  char name[NAME_SHOWN + 1];

  /* Under the lock. As a reader of the own ring: */
  bool is_over;     /* its connection has ended, or will: it is not waited for */
  bool is_false;    /* it has broken the rules; the thread also reads it without the lock */
  uint64_t tail;    /* so far it is known to have read */
  uint64_t first;   /* before this there is nothing for it that it may not have read */
  uint64_t last;    /* and behind this there is nothing for it */
  uint64_t dropped; /* of what was for it, so many are overwritten */
  uint32_t woken;   /* the sleep that it was woken from last */
  /* For a flush: */
  bool is_known;      /* it has told its names */
  uint64_t confirmed; /* so many changes of names it has heeded */

  /* Only the thread uses these. As a writer of its own ring: */
  uint64_t position, told_tail; /* so far it is read, and so far it knows that */
  uint64_t seen;                /* of what was for this process, so many are read or lost */
  uint64_t lost;                /* of these, so many are lost and not told yet */
  bool has_ended;               /* its connection */
  bool is_killed;               /* while it wrote */
  bool is_behind;               /* the oldest is being dropped: it is to be looked at again */
  /* What it is told: */
  bool has_hello;
  topic *untold; /* the first name by change that it is to be told of; NULL: none */
  uint64_t synced;                /* so many changes it was told of */
  bool owes_sync, owes_done;
  uint64_t done;   /* what owes_done is about */
  bool has_more;   /* the socket was full */
  uint32_t watched; /* events of its socket; 0: it is not watched yet */
  bool is_held;    /* `held` was received, and waits for room or memory */
  message held;
  size_t held_size;
} peer;

/* ---- The client ------------------------------------------------------------------------------ */

typedef struct local_client {
  client base; /* a name has a topic, once it is needed */

  /* Not changed after the thread has begun. */
  multicast_local_options options; /* its texts are in `texts` */
  texts texts;
  memory memory; /* what this client shows: its board and its ring */
  int memory_file;
  int poller;       /* an epoll */

  /* Under the lock. */
  peer *peers;
  peer *at[PEERS_MAX]; /* by place */
  unsigned peer_count;
  uint64_t head, oldest; /* as on the board */
  uint64_t told;         /* so many changes of names, of both kinds, are in the list */
  uint64_t peer_numbers;
  unsigned waits; /* so many calls wait for readers */
  inquiry *inquiries;
  uint64_t inquiry_numbers;
  answerer *old_answerers; /* until the client is freed */
  uint64_t joined, gone, expelled, sent, unwanted, late;

  /* Only the thread uses these. */
  group group;
  topic *first_topic, *last_topic;
  unsigned char *payload; /* a copy of what is delivered */
  size_t payload_size;
  uint32_t sleeps; /* as on the board */
  uint64_t joined_at;
  uint64_t arrived_at; /* the last entry; 0: none */
  bool is_short;       /* of memory: what is to be done is tried again soon */

  uint64_t received, overwritten; /* of the statistics; atomic */
} local_client;

/* ---- Names: topic.c -------------------------------------------------------------------------- */

/* Of names that are observed, and of those that are answered. */
static inline uint64_t changes_of(const local_client *c) {
  return c->base.names.changes + c->base.answered.changes;
}

/* All under the lock. */
topic *topic_find(const names *all, const char *name); /* NULL: there is none */
topic *topic_make(names *all, const char *name);       /* finds it, too; NULL: no memory */
size_t topic_kept(const topic *t); /* the room that its values take in the ring */
/* The value of this event; NULL: there is none. */
value *topic_value(const topic *t, uint32_t event);
value *value_make(uint32_t event, span payload); /* NULL: no memory */
void topic_keep(topic *t, value *v);             /* in place of that of the same event */
void topics_free(local_client *c);

/* Not under the lock. Delivers what is kept of a name to its first observer in this process. */
void local_give_kept(client *base, const char *name);

/* ---- The own ring: ring.c -------------------------------------------------------------------- */

/* What an entry is made of. */
typedef struct letter {
  entry_kind kind;
  const char *name; /* not NULL */
  uint32_t event;
  span payload;
  uint64_t number; /* of the question */
} letter;

static inline size_t number_size(unsigned kind) {
  return kind == ENTRY_NOTIFICATION ? 0 : sizeof(uint64_t);
}

/* All under the lock. */
size_t ring_size_of(size_t name_size, size_t payload_size); /* of an entry */
size_t letter_size(const letter *l);
/* False: a peer has yet to read what is there; it can drop that. */
bool ring_make_room(local_client *c, size_t bytes, bool may_drop);
/* The same, as `overflow` says. It may give the lock up, and waits until then at most. */
multicast_status ring_get_room(local_client *c, size_t bytes, uint64_t until);
void ring_write(local_client *c, const letter *l, const places *readers); /* needs room */
void ring_show(local_client *c, const places *readers); /* what was written; wakes readers */
/* Reads how far a peer has read. */
void ring_look(local_client *c, peer *p);
/* A peer that holds up the ring, or has yet to read something before `position`; NULL: none. */
peer *ring_slowest(local_client *c, uint64_t position);
void ring_wait(local_client *c, bool is_waiting); /* readers say at once how far they are */

multicast_status local_publish(client *base, const char *name, uint32_t event, span payload);

/* ---- The rings of peers: reader.c ------------------------------------------------------------ */

/* Delivers what is in the ring of a peer, so many entries at most. How many were for this process;
 * negative: the peer has broken the rules. */
int reader_read(local_client *c, peer *p, int most);

/* ---- Questions of this process: question.c --------------------------------------------------- */

/* On the thread. An answer has come; its payload is in `payload` of the client. */
void question_answered(local_client *c, const peer *p, uint64_t number, multicast_status status,
                       span payload);
/* On the thread. The peer has ended, and all that it wrote is read. */
void questions_end(local_client *c, const peer *p);

/* ---- Questions of peers: answer.c ------------------------------------------------------------ */

/* On the thread that delivers, not under the lock. Negative: nobody answers here, which is told. */
int64_t local_answer(client *base, const char *name, uint32_t event, span payload, origin from);
/* Tells who has asked, if there is room, that there will be no answer. */
void answer_refuse(local_client *c, origin to, multicast_status why);
/* Not in the child of a fork, and not under the lock. */
void answerers_release(answerer *all);

/* The others are not sent. */
static inline bool is_status_of_answer(uint32_t status) {
  const multicast_status s = (multicast_status)status;
  return s == MULTICAST_OK || s == MULTICAST_ERROR_STATE || s == MULTICAST_ERROR_OUT_OF_MEMORY;
}

/* ---- Peers: peer.c --------------------------------------------------------------------------- */

/* All on the thread. Takes the socket over. NULL: no memory, no place, or not of this user. */
peer *peer_add(local_client *c, int socket, const char *file);
/* Has its socket watched for what is awaited now. False: the system does not do it now. */
bool peer_watch(const local_client *c, peer *p);
void peer_remove(local_client *c, peer *p);
/* Sends what it is to be told, as far as its socket takes it. */
void peer_tell(local_client *c, peer *p);
/* Receives what it says, and heeds it. False: its connection has ended, or `is_false`. */
bool peer_hear(local_client *c, peer *p);
/* Has changes of names in the list of what peers are told. */
void peers_note_names(local_client *c);

/* ---- The thread: session.c ------------------------------------------------------------------- */

bool session_run(client *c);
void session_end(client *c);

#endif
