/* Peers that are none: they speak to a transport as they like, with the library's own functions for
 * memory and messages. */

#ifndef STRANGERS_H
#define STRANGERS_H

#include "../../../Sources/Transports/Local/board.h"
#include "../../../Sources/Transports/Local/message.h"
#include "groups.h"

enum { STRANGER_RING = 1 << 16, VICTIM_PLACE = 7 };

typedef struct stranger {
  int socket;
  memory its; /* what the victim shows */
  unsigned place; /* the stranger's on the victim's board */
  memory own;
  int file; /* of the own one */
} stranger;

/* Connects to the only peer of the group. */
void stranger_reach(stranger *s, const broker *b);
/* The same, and hears its hello; makes a memory, and says nothing. */
void stranger_connect(stranger *s, const broker *b);
void stranger_end(stranger *s);

/* Says hello as a peer does. */
void stranger_greet(const stranger *s);
void stranger_say(const stranger *s, message_kind kind, uint64_t number, const char *text);
/* Sends a packet with so many copies of the file. */
void stranger_send(const stranger *s, const void *bytes, size_t size, int file, int copies);

/* A peer, the victim, and strangers, which are no peers. */
typedef struct scene {
  broker b;
  peer victim; /* observes "n", and keeps the last values of names with a "k" */
  int calls;   /* of that observer */
  int expelled; /* for the test */
  stranger s, other;
} scene;

void scene_start(scene *c);
void scene_end(scene *c);                  /* the next peer is welcome */
void scene_meet(const scene *c, stranger *s); /* connects and greets, as a peer does */

/* TEST_OF_SCENE(name) { ... }: a test with a scene `c`. */
#define TEST_OF_SCENE(NAME)            \
  static void NAME##_with(scene *c);   \
  TEST(NAME) {                         \
    scene c;                           \
    scene_start(&c);                   \
    NAME##_with(&c);                   \
    scene_end(&c);                     \
  }                                    \
  static void NAME##_with(scene *c)

/* Writes an entry for the victim at the head, as it is; and shows it. */
void stranger_write(stranger *s, const entry *r, const void *behind, size_t size);
entry entry_for_victim(uint32_t name_size, uint32_t payload_size);

#endif
