/* A peer that keeps no rules. */

#ifndef HOSTILE_H
#define HOSTILE_H

#include "../../../../Sources/Transports/Local/board.h"
#include "../../../../Sources/Transports/Local/message.h"

/* An input is a sequence of these. */
typedef struct step {
  uint8_t what, where;
  uint16_t size;
  uint32_t small;
  uint64_t large;
} step;

enum {
  SAY,        /* a packet */
  SHOW,       /* a word of its board */
  SCRIBBLE,   /* a word of its ring */
  WRITE,      /* an entry at its head, right or nearly so */
  LATER,      /* the next one is done in the midst of what the library does, so many steps later */
  HEAR,       /* from here on what the victim does */
  READ,
  TELL,
  PUBLISH,
  OBSERVE,
  ASK,
  ANSWER,
  REPLY,
  END_READING, /* as the connection ends */
  MEET_AGAIN,
  STEP_KINDS
};

enum { HOSTILE_PLACE = 3 };
enum { HOSTILE_RING = RING_LEAST };

extern memory hostile_memory;

void hostile_create(void);        /* once */
int hostile_connect(void);        /* begins anew; the victim's socket */
void hostile_do(const step *s);
void hostile_disconnect(void);
const char *hostile_name(unsigned number); /* one of a few */

#endif
