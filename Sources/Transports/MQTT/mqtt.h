/* Shared by the files of libmulticast-mqtt. README.md describes them. */

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
  MESSAGE_PLAIN,   /* the payload alone */
  MESSAGE_OURS,    /* a header, then the payload */
  MESSAGE_UNKNOWN, /* of a later version, or cut off */
} message_kind;

message_kind message_read(const void *message, size_t size);
void message_write_header(unsigned char *header, const uint64_t *sender);

/* ---- Publications ---------------------------------------------------------------------------- */

/* One that libmosquitto has. */
typedef struct sending {
  uint64_t ticket;
  uint64_t question; /* its number; 0: it is none */
  int id; /* the packet's; written by libmosquitto */
} sending;

/* ---- Names ----------------------------------------------------------------------------------- */

/* The `state` of a name. */
typedef enum subscription {
  SUBSCRIPTION_NONE, /* the broker does not know of it */
  SUBSCRIPTION_SENT,
  SUBSCRIPTION_MADE,
  SUBSCRIPTION_REFUSED,
} subscription;

/* ---- Messages without observers -------------------------------------------------------------- */

/* A message that a kept session has brought before its name has an observer here. */
typedef struct stray {
  struct stray *next;
  names *names; /* those of notifications or of questions */
  uint32_t event;
  origin from;
  size_t size, name_size; /* with the NUL */
  char bytes[]; /* the name, the payload */
} stray;

/* ---- The client ------------------------------------------------------------------------------ */

enum {
  /* How many packets libmosquitto has at once. It keeps them over a lost connection. */
  SENDING_MAX = 20,
  /* How many messages the broker may have sent that are not acknowledged. */
  RECEIVING_MAX = 100,
  SUBSCRIBING_MAX = 64,
  /* How many packets the thread reads or sends before it does something else, and after how many
   * bytes that have arrived it reads no more. */
  AT_ONCE_MAX = 32,
  ARRIVED_MAX = 65536,
  /* How many bytes of messages without observers are kept; then it reads no more meanwhile. */
  STRAYS_MAX = 1 << 20,
  REASON_SIZE = 256
};

typedef struct mqtt_client {
  client base;

  /* Not changed after the thread has begun. */
  multicast_mqtt_options options; /* its texts are in `texts` */
  texts texts;

  /* Under the lock. */
  sending sending[SENDING_MAX];
  int sending_count;
  size_t unanswered; /* names that are SUBSCRIPTION_SENT */
  size_t cancelling; /* subscriptions that the broker has to end */
  uint64_t echoes;
  uint32_t used_protocol; /* 0: there is no connection */

  /* Only the thread uses these. */
  struct mosquitto *mosquitto; /* NULL: none any more */
  int protocol;
  struct {
    known_name *name; /* NULL: it was removed */
    int id;
  } subscribing[SUBSCRIBING_MAX];
  int subscribing_count;
  int strangers; /* names without observers that are to be taken back */
  stray *strays, **last_stray; /* messages of such names that may find observers soon */
  size_t stray_bytes;
  uint64_t strays_until; /* so long they are kept; UINT64_MAX: until the transport is used */
  bool is_held;     /* packets are held back */
  bool has_answer;  /* the broker has accepted or refused the connection */
  bool has_ended;   /* the connection */
  bool has_session; /* the broker had one */
  int answer;
  int end_code;
  /* Refusals that were not told. No more can come at once. */
  int refusals[SENDING_MAX]; /* of publications */
  int refusal_count;
  struct {
    known_name *name;
    int code;
  } refused[SUBSCRIBING_MAX]; /* subscriptions */
  int refused_count;
  char reason[REASON_SIZE]; /* the last error that libmosquitto has logged */
} mqtt_client;

/* The thread. */
bool session_run(client *c);
void session_end(client *c);
void session_set_callbacks(mqtt_client *c);

#endif
