/* Common code of the fault tests of all transports. */

#ifndef TRANSPORTS_FAULTS_H
#define TRANSPORTS_FAULTS_H

#include "../Harness/broker.h"
#include "requests.h"

/* ---- Defined in the folder Faults of each library -------------------------------------------- */

/* Options with all texts, and with files in the folder of a broker. They connect to a free port. */
transport_options all_options(peer *p, const broker *b);

/* Options of a peer that loses nothing while connections last, and that makes as many requests as
 * possible. */
transport_options asking_options(peer *p, int port);

/* The least number of requests of a connect with all options and a queue. */
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

/* Connects again and again, and refuses another request each time; `refused` is the number of
 * refused requests per connect. */
void expect_no_connection(int refused);

/* Expects that a connect returns MULTICAST_ERROR_SYSTEM if a request of this kind is refused. */
void expect_no_start(int kind);

/* Two peers publish to each other until both have received messages, while requests of the threads
 * of transports are refused. Returns the sums of the reports and counts of both peers. Sets
 * `*was_made` if a request was refused. */
typedef struct outcome {
  uint64_t lost, dropped;
  int connections_lost;
} outcome;
outcome go_on(int kind, int granted, int refused, bool *was_made);

/* Expects that a request whose publication is refused ends with the connection, and that the next
 * request is answered. */
void expect_question_lost(int kind, int granted);

/* Like go_on(), but expects that one request was refused. */
outcome expect_to_go_on(int kind, int granted);

#endif
