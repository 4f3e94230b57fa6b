/* The messages of peers over their connection: each is a packet. */

#ifndef MULTICAST_LOCAL_MESSAGE_H
#define MULTICAST_LOCAL_MESSAGE_H

#include "../Common/Names/coding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_SHOWN = 63 };

typedef enum message_kind {
  MESSAGE_WAKE = 1, /* there is something in the ring */
  MESSAGE_HELLO,    /* the first one: `place` is that of who gets it, `number` is where the ring
                     * begins for it, `text` the sender's name; the memory's file comes with it */
  MESSAGE_WANT,     /* the name `text` has observers; if `place` is 1: its questions are answered */
  MESSAGE_UNWANT,   /* it has none any more; or they are not */
  MESSAGE_SYNC,     /* all changes of names up to `number` were told */
  MESSAGE_DONE      /* the answer, when they are heeded */
} message_kind;

typedef struct message {
  uint32_t kind, place;
  uint64_t number;
  char text[NAME_MAX_SIZE + 1]; /* what is sent ends with its NUL */
} message;

typedef enum receipt {
  RECEIPT_MESSAGE,
  RECEIPT_NONE,   /* there is none now */
  RECEIPT_END,    /* there will be none; or this process cannot have the file that came */
  RECEIPT_INVALID /* not a message of this library */
} receipt;

/* Sends a text if it is not NULL, and a file if it is not negative. An errno. It does not wait. */
int message_send(int socket, message_kind kind, uint32_t place, uint64_t number, const char *text,
                 int file);
/* Receives one, and checks its form. `file`: what came with it, which is the caller's; or -1. */
receipt message_receive(int socket, message *m, int *file);

#endif
