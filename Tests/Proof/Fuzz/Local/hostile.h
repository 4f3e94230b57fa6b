/* A peer that breaks every rule. */

#ifndef HOSTILE_H
#define HOSTILE_H

#include "../../../../Sources/Transports/Local/board.h"
#include "../../../../Sources/Transports/Local/message.h"

/* An input is a sequence of steps. */
typedef struct step {
  uint8_t what, where;
  uint16_t size;
  uint32_t small;
  uint64_t large;
} step;

enum {
  SAY,        /* sends a packet */
  SHOW,       /* writes a word of its shared header */
  SCRIBBLE,   /* writes a word of its ring */
  WRITE,      /* writes an entry at its head that is right or nearly right */
  LATER,      /* the next step is performed later, between two steps of the library */
  HEAR,       /* this and the following kinds are steps of the victim */
  READ,
  TELL,
  PUBLISH,
  OBSERVE,
  ASK,
  ANSWER,
  REPLY,
  END_READING, /* what happens when the connection ends */
  MEET_AGAIN,
  STEP_KINDS
};

enum { HOSTILE_PLACE = 3 };
enum { HOSTILE_RING = RING_LEAST };

extern memory hostile_memory;

void hostile_create(void);        /* called once */
int hostile_connect(void);        /* starts a new connection; returns the victim's socket */
void hostile_do(const step *s);
void hostile_disconnect(void);
const char *hostile_name(unsigned number); /* one of a few */

#endif
