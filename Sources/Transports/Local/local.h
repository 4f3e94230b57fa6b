/* The client of libmulticast-local, which is a member of a group, and its peers, which are the
 * other members. */

#ifndef MULTICAST_LOCAL_LOCAL_H
#define MULTICAST_LOCAL_LOCAL_H

#include "../Common/client.h"
#include "group.h"
#include "message.h"
#include "topic.h"

/* ---- Peers ----------------------------------------------------------------------------------- */

/* The largest number of names that a client can observe or answer questions about. */
#ifndef NAMES_MAX
#define NAMES_MAX 65536
#endif

/* The two lists of topics. */
enum { UNWANTED, WANTED, LISTS };

typedef struct peer {
  struct peer *next;

  /* This field does not change after the peer has been added to the list, unless the peer is
   * reconnected. */
  int socket;

  /* These fields do not change after the peer has been added to the list. */
  unsigned place;  /* index of its slot on this client's board */
  uint64_t number; /* unique among the peers of this client */
  pid_t pid;
  char file[FILE_NAME_SIZE]; /* the peer's socket if this client has connected to it, or empty */
  uint64_t start;            /* position where this client's ring begins for the peer */

  /* When the peer's hello has arrived, the client's thread sets these fields under the lock. */
  bool is_heard; /* the hello has arrived */
  bool is_met;   /* and was accepted */
  memory memory;        /* the peer's shared memory */
  unsigned place_there; /* index of this client's slot on the peer's board */
  char name[NAME_SHOWN + 1];

  /* These fields describe the peer as a reader of this client's ring. The lock protects these
   * fields. */
  bool is_over;     /* the connection has ended or will end, so publishers do not wait for it */
  bool is_false;    /* the peer broke the protocol; the thread also reads it without the lock */
  bool has_tail;    /* the slot on the peer's board contains its tail */
  uint64_t tail;    /* the peer has read the ring up to this position */
  uint64_t first;   /* there are no unread entries for the peer before this position */
  uint64_t last;    /* there are no entries for the peer from this position on */
  uint64_t dropped; /* number of entries for the peer that were dropped */
  uint32_t woken;   /* the `sleeps` of the peer when it was last woken */
  /* Used by flushes: */
  bool is_known;      /* the peer has announced its names */
  uint64_t confirmed; /* number of changes of names that the peer has processed */

  /* These fields describe the peer as the writer of its own ring. Only the client's thread uses
   * them. */
  uint64_t position, told_tail; /* end of the read entries; the last tail that was stored */
  uint64_t known_from;          /* `known` of the slot on the peer's board, or UINT64_MAX */
  uint64_t seen;                /* number of entries for this process that were read or lost */
  uint64_t lost;                /* number of lost entries that have not been reported */
  bool has_ended;               /* the connection has ended */
  bool is_killed;               /* the peer was killed while it was writing */
  bool is_behind;               /* the peer is dropping the oldest entries; read again soon */
  /* These fields describe the messages to the peer. Only the client's thread uses them. */
  bool has_hello;  /* the hello was sent */
  uint64_t greeted_at; /* when the hello was sent, or before that, when sending was first tried */
  topic *untold[LISTS]; /* per list, the first topic that was not sent to the peer; may be NULL */
  bool is_told;    /* all names have been sent to the peer once */
  size_t names;    /* number of names that the peer wants */
  bool owes_sync, owes_done;
  uint64_t done;   /* the number for the MESSAGE_DONE that must be sent */
  bool has_more;   /* the socket was full */
  uint32_t watched; /* the epoll events of the socket; 0 if it is not watched */
  bool is_held;    /* `held` was received, but cannot be processed without more room or memory */
  message held;
} peer;

/* ---- The client ------------------------------------------------------------------------------ */

typedef struct local_client {
  client base; /* the `subscription` of a name is its topic */

  /* These fields do not change after the client's thread has started. */
  multicast_local_options options; /* its strings are in `texts` */
  texts texts;
  memory memory; /* this client's shared memory: its board and its ring */
  int memory_file;
  int poller; /* an epoll descriptor */

  /* Protected by the lock. */
  peer *peers;
  peer *at[PEERS_MAX]; /* indexed by place */
  places unknown; /* peers that joined earlier and have not announced their names yet */
  places offering; /* peers to which the retained values for a prefix are currently being sent */
  uint64_t head, oldest; /* copies of the values on the board */
  uint64_t told;         /* number of changes of names that the list of topics includes */
  uint64_t peer_numbers;
  unsigned waits; /* number of calls that are waiting for readers */
  uint64_t joined, gone, expelled, sent, unwanted, late;

  /* Only the client's thread uses these fields. */
  group group;
  topic_list lists[LISTS];   /* names that may have to be sent to peers, by last change */
  uint64_t listings;         /* number of changes of these lists */
  unsigned char *payload;    /* buffer for the payload that is being delivered */
  size_t payload_size;
  uint32_t sleeps; /* copy of the value on the board */
  uint64_t joined_at;
  uint64_t arrived_at; /* time of the last entry; 0 if there was none */
  bool is_short;       /* out of memory or room; retry soon */

  uint64_t received, overwritten; /* statistics; atomic */
} local_client;

#endif
