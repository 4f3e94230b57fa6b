/* What the fault tests of all transports share. */

#ifndef TRANSPORTS_FAULTS_H
#define TRANSPORTS_FAULTS_H

#include "../Harness/broker.h"
#include "requests.h"

/* ---- What the folder Faults of the library has ----------------------------------------------- */

/* Options with each text, and files in the folder of a broker; they connect to a free port. */
transport_options all_options(peer *p, const broker *b);

/* Options of a peer that loses nothing while connections last; it asks for as much as it can. */
transport_options asking_options(peer *p, int port);

/* So many requests a connect with all options and a queue makes, at least. */
extern const int least_requests;

/* ---- What is kept ---------------------------------------------------------------------------- */

typedef struct belongings {
  int blocks, objects, descriptors;
} belongings;

belongings look(void);
void expect_same(belongings before);

/* Releases it, and waits for the end of its thread. */
void end_transport(peer *p, belongings before);

/* ---- What is expected ------------------------------------------------------------------------ */

/* Connects again and again, with another request refused each time, and so many in all. */
void expect_no_connection(int refused);

/* A connect says MULTICAST_ERROR_SYSTEM if such a request is refused. */
void expect_no_start(int kind);

/* Two peers publish to each other until both have got something, while requests of the threads of
 * transports are refused. Returns what the peers were told and have counted, added up; `*was_made`:
 * whether a request was refused. */
typedef struct outcome {
  uint64_t lost, dropped;
  int connections_lost;
} outcome;
outcome go_on(int kind, int granted, int refused, bool *was_made);

/* A question whose publication is refused ends with the connection; the next one is answered. */
void expect_question_lost(int kind, int granted);

/* The same as go_on(), and one was refused. */
outcome expect_to_go_on(int kind, int granted);

#endif
