/* Declarations shared by the files of libmulticast-mqtt, which README.md describes. */

#ifndef MULTICAST_MQTT_MQTT_H
#define MULTICAST_MQTT_MQTT_H

#include "../Common/client.h"

#include <multicast_mqtt.h>

struct mosquitto;

/* ---- Topics ---------------------------------------------------------------------------------- */

extern const coding topic_coding, question_coding;

/* ---- Messages -------------------------------------------------------------------------------- */

enum { HEADER_SIZE = 16, SENDER_SIZE = 8 };

typedef enum message_kind {
  MESSAGE_PLAIN,   /* a payload without a header */
  MESSAGE_OURS,    /* a header and a payload */
  MESSAGE_UNKNOWN, /* a header of a later version, or an incomplete one */
} message_kind;

message_kind message_read(const void *message, size_t size);
void message_write_header(unsigned char *header, const uint64_t *sender);

/* ---- Publications ---------------------------------------------------------------------------- */

/* A publication that was passed to libmosquitto and is not acknowledged. */
typedef struct sending {
  uint64_t ticket;
  uint64_t question; /* the number of the question, or 0 */
  int id; /* of the packet; written by libmosquitto */
} sending;

/* ---- Names ----------------------------------------------------------------------------------- */

/* The `state` of a name. */
typedef enum subscription {
  SUBSCRIPTION_NONE, /* not subscribed */
  SUBSCRIPTION_SENT,
  SUBSCRIPTION_MADE,
  SUBSCRIPTION_REFUSED,
} subscription;

/* ---- Messages without observers -------------------------------------------------------------- */

/* A message of a persistent session that has arrived before its name has an observer. */
typedef struct stray {
  struct stray *next;
  names *names; /* the names with observers, or the names with questions */
  uint32_t event;
  origin from;
  size_t size, name_size; /* name_size includes the NUL */
  char bytes[]; /* the name, the payload */
} stray;

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  /* The largest number of publications in flight. libmosquitto keeps them when a connection
   * ends. */
  SENDING_MAX = 20,
  /* The largest number of messages that the broker sends without an acknowledgement. */
  RECEIVING_MAX = 100,
  SUBSCRIBING_MAX = 64,
  /* The number of packets that the thread reads or sends at once. It also stops reading when so
   * many bytes have arrived. */
  AT_ONCE_MAX = 32,
  ARRIVED_MAX = 65536,
  /* The largest size of stored messages without observers; beyond it the thread does not read. */
  STRAYS_MAX = 1 << 20,
  REASON_SIZE = 256
};

typedef struct mqtt_client {
  client base;

  /* These do not change after the thread has started. */
  multicast_mqtt_options options; /* its strings are in `texts` */
  texts texts;

  /* Protected by the lock. */
  sending sending[SENDING_MAX];
  int sending_count;
  size_t unanswered; /* number of names that are SUBSCRIPTION_SENT */
  size_t cancelling; /* number of unacknowledged unsubscriptions */
  uint64_t echoes;
  uint32_t used_protocol; /* 0 without a connection */

  /* Used only by the thread. */
  struct mosquitto *mosquitto; /* NULL after the thread has destroyed it */
  int protocol;
  struct {
    known_name *name; /* NULL if it was removed */
    int id;
  } subscribing[SUBSCRIBING_MAX];
  int subscribing_count;
  int strangers; /* number of names without observers that will be unsubscribed */
  stray *strays, **last_stray; /* messages without observers; observers may be registered soon */
  size_t stray_bytes;
  uint64_t strays_until; /* when they are discarded; UINT64_MAX until the transport is used */
  bool is_held;     /* output is held back by TCP_CORK */
  bool has_answer;  /* the broker has accepted or refused the connection */
  bool has_ended;   /* the connection has ended */
  bool has_session; /* the broker has kept a session */
  int answer;
  int end_code;
  /* Refusals that have not been reported. The arrays have room for all of them: no more operations
   * are in flight at once, and refusals are reported before more are sent. */
  int refusals[SENDING_MAX]; /* of publications */
  int refusal_count;
  struct {
    known_name *name;
    int code;
  } refused[SUBSCRIBING_MAX]; /* of subscriptions */
  int refused_count;
  char reason[REASON_SIZE]; /* the last error that libmosquitto has logged */
} mqtt_client;

/* Functions of the thread. */
bool session_run(client *c);
void session_end(client *c);
void session_set_callbacks(mqtt_client *c);

#endif
