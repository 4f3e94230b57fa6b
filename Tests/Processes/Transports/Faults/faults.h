/* The code that all transports' fault tests share. */

#ifndef TRANSPORTS_FAULTS_H
#define TRANSPORTS_FAULTS_H

#include "../Harness/broker.h"
#include "requests.h"

/* ---- Defined in the folder Faults of each library -------------------------------------------- */

/* Returns options in which all strings are set. The files named in the options are in the broker's
 * folder, and nobody listens on the port in the address. */
transport_options all_options(peer *p, const broker *b);

/* Returns options of a peer that loses no message while its connections last, and that makes as
 * many requests to the system as possible. */
transport_options asking_options(peer *p, int port);

/* Connecting with all options and a queue makes at least this many requests to the system. */
extern const int least_requests;

/* ---- Held resources -------------------------------------------------------------------------- */

typedef struct belongings {
  int blocks, objects, descriptors;
} belongings;

belongings look(void);
void expect_same(belongings before);

/* Releases the transport, and waits for the end of its thread. */
void end_transport(peer *p, belongings before);

/* ---- Expectations ---------------------------------------------------------------------------- */

/* Connects repeatedly, and refuses `refused` consecutive requests each time. The refusals start at
 * the first request in the first attempt, and one request later in each further attempt. */
void expect_no_connection(int refused);

/* Expects that connecting returns MULTICAST_ERROR_SYSTEM if a request of the given kind is
 * refused. */
void expect_no_start(int kind);

/* go_on() makes two peers publish to each other until both have received messages. It grants the
 * first `granted` requests of the transports' threads, and refuses the next `refused` requests.
 * Returns the sum of both peers' statistics and reports, and stores in `*was_made` whether a
 * request was refused. */
typedef struct outcome {
  uint64_t lost, dropped;
  int connections_lost;
} outcome;
outcome go_on(int kind, int granted, int refused, bool *was_made);

/* Makes the system refuse a request of a transport's thread when a question is sent. Expects that
 * the connection and the question end, and that the next question is answered. */
void expect_question_lost(int kind, int granted);

/* Like go_on(), but refuses one request, and expects that this request was made. */
outcome expect_to_go_on(int kind, int granted);

#endif
