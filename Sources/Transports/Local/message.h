/* The messages that peers send to each other over their connection, one per packet. */

#ifndef MULTICAST_LOCAL_MESSAGE_H
#define MULTICAST_LOCAL_MESSAGE_H

#include "../Common/Names/coding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_SHOWN = 63 };

typedef enum message_kind {
  MESSAGE_WAKE = 1, /* the ring has new entries */
  MESSAGE_HELLO,    /* The first message. `place` is the receiver's place on the sender's board,
                     * `number` is the position where the sender's ring begins for the receiver, and
                     * `text` is the sender's name. The sender's memfd is attached. */
  MESSAGE_WANT,     /* the name `text` has observers or, if `place` is 1, answers questions */
  MESSAGE_UNWANT,   /* the name has no observers any more, or answers no questions any more */
  MESSAGE_SYNC,     /* all changes of names up to `number` have been sent */
  MESSAGE_DONE      /* the reply to MESSAGE_SYNC: those changes have been processed */
} message_kind;

typedef struct message {
  uint32_t kind, place;
  uint64_t number;
  char text[NAME_MAX_SIZE + 1]; /* the message ends with the NUL */
} message;

typedef enum receipt {
  RECEIPT_MESSAGE,
  RECEIPT_NONE,   /* there is no message now */
  RECEIPT_END,    /* the connection has ended, or this process cannot receive the attached file */
  RECEIPT_INVALID /* not a message of this library */
} receipt;

/* Sends a message. Adds `text` if it is not NULL, and attaches `file` if it is not negative. Does
 * not block. Returns an errno. */
int message_send(int socket, message_kind kind, uint32_t place, uint64_t number, const char *text,
                 int file);
/* Receives a message, and checks whether the message is well-formed. Sets `*file` to the attached
 * file, which the caller must close, or to -1 if there is none. */
receipt message_receive(int socket, message *m, int *file);

#endif
