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

/* What is known of a name beside its observers here: the `subscription` of a known_name. */
typedef struct topic {
  const known_name *name;
  /* Under the lock. */
  places wanted_by; /* the peers that have observers of it */
  value *values;
  /* Only the thread uses these: names by their last change, all that had observers here. */
  struct topic *previous, *next;
  bool is_listed;
} topic;

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

  /* Changed by the thread, under the lock, when the peer says hello. */
  bool is_met;
  memory memory;        /* what it shows */
  unsigned place_there; /* this client's slot on the peer's board */
  char name[NAME_SHOWN + 1];

  /* Under the lock. As a reader of the own ring: */
  bool is_over;     /* its connection has ended, or will: it is not waited for */
  bool is_false;    /* it has broken the rules */
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
  uint64_t told;         /* so many changes of names are in the list */
  uint64_t peer_numbers;
  unsigned waits; /* so many calls wait for readers */
  uint64_t joined, gone, expelled, sent, unwanted;

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

/* All under the lock. */
topic *topic_find(const local_client *c, const char *name);  /* NULL: there is none */
topic *topic_make(local_client *c, const char *name);        /* finds it, too; NULL: no memory */
size_t topic_kept(const topic *t); /* the room that its values take in the ring */
/* The value of this event; NULL: there is none. */
value *topic_value(const topic *t, uint32_t event);
value *value_make(uint32_t event, span payload); /* NULL: no memory */
void topic_keep(topic *t, value *v);             /* in place of that of the same event */
void topics_free(local_client *c);

/* Not under the lock. Delivers what is kept of a name to its first observer in this process. */
void local_give_kept(client *base, const char *name);

/* ---- The own ring: ring.c -------------------------------------------------------------------- */

/* All under the lock. */
size_t ring_size_of(size_t name_size, size_t payload_size); /* of an entry */
/* False: a peer has yet to read what is there; it can drop that. */
bool ring_make_room(local_client *c, size_t bytes, bool may_drop);
void ring_write(local_client *c, const char *name, uint32_t event, span payload,
                const places *readers); /* needs room */
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
