/* The declarations that the files of libmulticast-mqtt share. README.md describes the files. */

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
  MESSAGE_UNKNOWN, /* a header of a later version, or an incomplete header */
} message_kind;

message_kind message_read(const void *message, size_t size);
void message_write_header(unsigned char *header, const uint64_t *sender);

/* ---- Publications ---------------------------------------------------------------------------- */

/* A publication that has been passed to libmosquitto but has not been acknowledged yet. */
typedef struct sending {
  uint64_t ticket;
  uint64_t question; /* the number of the question, or 0 */
  int id; /* the packet's identifier, which libmosquitto stores here */
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

/* A message of a persistent session that arrived before its name had an observer. */
typedef struct stray {
  struct stray *next;
  names *names; /* the table that contains the name: `names` or `answered` of the client */
  uint32_t event;
  origin from;
  size_t size, name_size; /* name_size includes the NUL */
  char bytes[]; /* the name, the payload */
} stray;

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  /* The largest number of publications in flight. When a connection ends, libmosquitto keeps the
   * publications that are in flight. */
  SENDING_MAX = 20,
  /* The largest number of messages that the broker sends before it waits for acknowledgements. */
  RECEIVING_MAX = 100,
  SUBSCRIBING_MAX = 64,
  /* The largest number of packets that the thread reads or sends in a row. */
  AT_ONCE_MAX = 32,
  /* The thread also stops reading when messages of this total size have arrived. */
  ARRIVED_MAX = 65536,
  /* The thread stops reading when the stored messages without observers have reached this size. */
  STRAYS_MAX = 1 << 20,
  REASON_SIZE = 256
};

typedef struct mqtt_client {
  client base;

  /* These fields do not change after the client's thread has started. */
  multicast_mqtt_options options; /* its strings are in `texts` */
  texts texts;

  /* Protected by the lock. */
  sending sending[SENDING_MAX];
  int sending_count;
  struct {
    known_name *name; /* NULL if it was removed, and for an unsubscription */
    uint64_t change;
    int id; /* the packet's identifier, which libmosquitto stores here */
  } subscribing[SUBSCRIBING_MAX]; /* unacknowledged subscriptions and unsubscriptions */
  int subscribing_count;
  uint64_t echoes;
  uint32_t used_protocol; /* 0 without a connection */

  /* Only the client's thread uses these fields. */
  struct mosquitto *mosquitto; /* NULL after the thread has destroyed it */
  int protocol;
  int strangers; /* number of names without observers that will be unsubscribed */
  stray *strays, **last_stray; /* messages whose observers may register soon */
  size_t stray_bytes;
  uint64_t kept_alive_at; /* the last time that keep_alive() did something */
  uint64_t strays_until; /* time to discard them; UINT64_MAX until the transport is used */
  bool is_held;     /* TCP_CORK delays the output */
  bool has_answer;  /* the broker has accepted or refused the connection */
  bool has_ended;   /* the connection has ended */
  bool has_session; /* the broker has kept a session */
  int answer;
  int end_code;
  /* Refusals that are yet to be reported. The arrays need only one element for each operation that
   * can be in flight, because the thread reports all refusals before it sends more operations. */
  int refusals[SENDING_MAX]; /* of publications */
  int refusal_count;
  struct {
    known_name *name;
    int code;
  } refused[SUBSCRIBING_MAX]; /* of subscriptions */
  int refused_count;
  char reason[REASON_SIZE]; /* the first error that libmosquitto has logged, or "" */
} mqtt_client;

/* The functions of the client's thread. */
bool session_run(client *c);
void session_end(client *c);
void session_set_callbacks(mqtt_client *c);

#endif
