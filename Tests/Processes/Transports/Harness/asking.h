/* Peers that ask questions, and the results of their questions. */

#ifndef ASKING_H
#define ASKING_H

#include "broker.h"

enum { TOLD_MAX = 32 };

/* All results of a question, in order. */
typedef struct told {
  int count;
  int enough; /* the question ends after this number of answers; 0: never */
  int answers;
  struct {
    multicast_status status;
    int32_t pid;
    char peer[64], payload[64];
    size_t size;
    uint64_t at;
  } each[TOLD_MAX];
} told;

bool note_told(void *context, multicast_status status, int32_t pid, const char *peer,
               const void *payload, size_t size);

/* Asks a question with the event 7 and the payload `text`. */
multicast_status ask(const peer *p, told *t, const char *name, const char *text,
                     uint64_t timeout_ns);

/* Answers each question with "NAME:EVENT:QUESTION". */
typedef struct responder {
  const char *name;
  int calls, releases;
} responder;

void respond(void *context, const transport_question *question, uint32_t event,
             const void *payload, size_t size);
void note_release_of_responder(void *context);
/* Stores the question in the memory at `context`, which must be zero before the call, and does not
 * answer. */
void keep_question(void *context, const transport_question *question, uint32_t event,
                   const void *payload, size_t size);

/* Makes a peer answer questions about a name, and waits until the other peers know this. */
void peer_answer(peer *p, const char *name, responder *r);

/* Waits until the peer has met `others` other peers and they have learned its names. */
void peer_meet(peer *p, int others);

/* Starts two or three peers, and waits until they know each other. */
void start_peers(broker *b, peer *here, peer *there, peer *third);

/* ---- On other threads ------------------------------------------------------------------------ */

/* start_reply() starts a thread that waits for a question and then sends the reply `text`. */
typedef struct late_reply {
  transport_question question;
  const char *text;
  int result;
} late_reply;

pthread_t start_reply(late_reply *r);

/* A thread that asks a question about `q` and waits until the question has ended. */
typedef struct asking {
  peer *p;
  multicast_status result;
  told t;
  int is_done;
} asking;

pthread_t start_asking(asking *a);

#endif
