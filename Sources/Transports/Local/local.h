/* A member of a group: this client, and its peers. */

#ifndef MULTICAST_LOCAL_LOCAL_H
#define MULTICAST_LOCAL_LOCAL_H

#include "../Common/client.h"
#include "group.h"
#include "message.h"
#include "topic.h"

/* ---- Peers ----------------------------------------------------------------------------------- */

/* How many names may have observers here, or be answered. */
#ifndef NAMES_MAX
#define NAMES_MAX 65536
#endif

typedef struct peer {
  struct peer *next;

  /* Not changed after it is in the list, except if it has to be reached again. */
  int socket;

  /* Not changed after it is in the list. */
  unsigned place;  /* here: its slot on the own board */
  uint64_t number; /* no other peer of the client has it */
  pid_t pid;
  char file[FILE_NAME_SIZE]; /* its socket, if it was this client that has connected; or empty */
  uint64_t start;            /* where the own ring begins for it */
  uint64_t added_at;

  /* Changed by the thread, under the lock, when the peer says hello. */
  bool is_heard; /* its hello has come */
  bool is_met;
  memory memory;        /* what it shows */
  unsigned place_there; /* this client's slot on the peer's board */
  char name[NAME_SHOWN + 1];

  /* Under the lock. As a reader of the own ring: */
  bool is_over;     /* its connection has ended, or will: it is not waited for */
  bool is_false;    /* it has broken the rules; the thread also reads it without the lock */
  bool has_tail;    /* its slot has it: it has heard where the own ring begins for it */
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
  uint64_t known_from;          /* what is before was written before it knew the names here */
  uint64_t seen;                /* of what was for this process, so many are read or lost */
  uint64_t lost;                /* of these, so many are lost and not told yet */
  bool has_ended;               /* its connection */
  bool is_killed;               /* while it wrote */
  bool is_behind;               /* the oldest is being dropped: it is to be looked at again */
  /* Messages for it: */
  bool has_hello;
  topic *untold;   /* the first name by change that it is to be told of; NULL: none */
  uint64_t synced; /* the last listing of the names that it was told first; 0: not told yet */
  size_t names;    /* so many names that it has told are wanted */
  bool owes_sync, owes_done;
  uint64_t done;   /* what owes_done is about */
  bool has_more;   /* the socket was full */
  uint32_t watched; /* events of its socket; 0: it is not watched yet */
  bool is_held;    /* `held` was received, and waits for room or memory */
  message held;
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
  places unknown; /* peers that were there before, and have yet to tell their names */
  uint64_t head, oldest; /* as on the board */
  uint64_t told;         /* so many changes of names, of both kinds, are in the list */
  uint64_t peer_numbers;
  unsigned waits; /* so many calls wait for readers */
  uint64_t joined, gone, expelled, sent, unwanted, late;

  /* Only the thread uses these. */
  group group;
  topic *first_topic, *last_topic;
  uint64_t listings; /* changes of this list */
  uint64_t listed, clear_at; /* topics in it; when there were so many listings, it is cleared */
  unsigned char *payload; /* a copy of what is delivered */
  size_t payload_size;
  uint32_t sleeps; /* as on the board */
  uint64_t joined_at;
  uint64_t arrived_at; /* the last entry; 0: none */
  bool is_short;       /* of memory: what is to be done is tried again soon */

  uint64_t received, overwritten; /* of the statistics; atomic */
  int sockets[PEERS_MAX]; /* of peers, by place, for the child of a fork; atomic; negative: none */
} local_client;

#endif
