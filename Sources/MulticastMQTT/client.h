/* What the files of libmulticast-mqtt share. README.md describes them. */

#ifndef MULTICAST_MQTT_CLIENT_H
#define MULTICAST_MQTT_CLIENT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <multicast_mqtt.h>

#include "../MulticastTransports/coding.h"
#include "../MulticastTransports/names.h"
#include "../MulticastTransports/process.h"
#include "../MulticastTransports/structs.h"

struct mosquitto;

/* ---- Topics ---------------------------------------------------------------------------------- */

extern const coding topic_coding;

/* ---- Messages -------------------------------------------------------------------------------- */

enum { HEADER_SIZE = 16, SENDER_SIZE = 8 };

typedef enum message_kind {
  MESSAGE_PLAIN,   /* the payload alone */
  MESSAGE_OURS,    /* a header, then the payload */
  MESSAGE_UNKNOWN, /* of a later version, or cut off */
} message_kind;

message_kind message_read(const void *message, size_t size);
void message_write_header(unsigned char *header, const unsigned char *sender);

/* ---- Publications ---------------------------------------------------------------------------- */

/* One that waits to be sent. */
typedef struct publication {
  struct publication *next;
  uint64_t ticket; /* counts publications, from 1 */
  size_t topic_size;
  size_t size; /* of the message */
  bool is_retained;
  char bytes[]; /* the topic, a NUL, the message */
} publication;

/* One that libmosquitto has. */
typedef struct sending {
  uint64_t ticket;
  int id; /* the packet's; written by libmosquitto */
} sending;

/* ---- Names ----------------------------------------------------------------------------------- */

/* The state of a name. */
typedef enum subscription {
  SUBSCRIPTION_NONE, /* the broker does not know of it */
  SUBSCRIPTION_SENT,
  SUBSCRIPTION_MADE,
  SUBSCRIPTION_REFUSED,
} subscription;

/* ---- Arrivals -------------------------------------------------------------------------------- */

typedef struct arrival {
  struct arrival *next;
  size_t size;
  uint32_t event;
  char name[NAME_MAX_SIZE + 1];
  _Alignas(16) unsigned char payload[];
} arrival;

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  /* How many packets libmosquitto has at once. It keeps them over a lost connection. */
  SENDING_MAX = 20,
  /* How many messages the broker may have sent that are not acknowledged. */
  RECEIVING_MAX = 100,
  SUBSCRIBING_MAX = 64,
  /* How many packets the thread reads or sends before it does something else, and after how many
   * bytes of payload it reads no more. */
  AT_ONCE_MAX = 32,
  ARRIVED_MAX = 65536,
  REASON_SIZE = 256
};

typedef struct client {
  /* Not changed after the thread has begun. */
  multicast_mqtt_options options; /* its texts are copies */
  struct mosquitto *mosquitto;    /* only the thread uses it */
  multicast inbox;                /* its delegate delivers on the thread that runs the queue */
  pthread_t thread;
  int wakeup; /* eventfd */
  unsigned fork_count;
  unsigned char sender[SENDER_SIZE];

  int references;       /* the transport's, the thread's, the inbox's, and of running calls */
  struct client *next;  /* in the list of all, under its lock */

  /* Under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_stopping;
  bool is_away; /* the thread is in a caller's function, or waits for the system to connect */
  bool is_done; /* the thread has ended */
  bool is_asleep;
  bool may_publish; /* while it is asleep: it would send a publication */
  bool is_connected;
  publication *first, *last; /* the outbox */
  uint64_t tickets;
  sending sending[SENDING_MAX];
  int sending_count;
  names names;
  size_t unanswered; /* names that are SUBSCRIPTION_SENT */
  multicast_mqtt_stats stats;

  /* Only the thread uses these. */
  int protocol;
  uint64_t connected_at;
  struct {
    known_name *name; /* NULL: it was removed */
    int id;
  } subscribing[SUBSCRIBING_MAX];
  int subscribing_count;
  int strangers; /* names without observers that are to be taken back */
  arrival *first_arrival, *last_arrival;
  size_t arrived; /* the bytes of their payloads */
  bool is_held;   /* packets are held back */
  bool has_answer;  /* the broker has accepted or refused the connection */
  bool has_ended;   /* the connection */
  bool has_session; /* the broker had one */
  int answer;
  int end_code;
  int refusal; /* of a publication; 0: none that was not told */
  int subscription_refusal;
  char refused_name[NAME_MAX_SIZE + 1];
  char reason[REASON_SIZE]; /* the last error that libmosquitto has logged */
} client;

/* Whether this is the child of a fork: the thread is not here, and the locks may be taken. */
bool client_is_in_child(const client *c);
void client_retain(client *c);
void client_release(client *c);
void client_wake(client *c); /* under the lock */

/* The thread. */
void *session_thread(void *c);
void session_set_callbacks(client *c);

void publication_free(publication *p);

#endif
