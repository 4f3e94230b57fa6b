/* Strangers: programs that talk to a transport like peers but may break the rules. They use the
 * library's own functions for memory and messages. */

#ifndef STRANGERS_H
#define STRANGERS_H

#include "../../../Sources/Transports/Local/board.h"
#include "../../../Sources/Transports/Local/message.h"
#include "groups.h"

enum { STRANGER_RING = 1 << 16, VICTIM_PLACE = 7 };

typedef struct stranger {
  int socket;
  memory its; /* the memory that the victim shares */
  unsigned place; /* the stranger's place in the victim's shared header */
  memory own;
  int file; /* of its own memory */
} stranger;

/* Connects to the only peer of the group. */
void stranger_reach(stranger *s, const broker *b);
/* Like stranger_reach, but also receives the peer's hello and creates a memory. Sends nothing. */
void stranger_connect(stranger *s, const broker *b);
void stranger_end(stranger *s);

/* Sends a hello as a peer does. */
void stranger_greet(const stranger *s);
void stranger_say(const stranger *s, message_kind kind, uint64_t number, const char *text);
/* Sends a packet with several copies of the file. */
void stranger_send(const stranger *s, const void *bytes, size_t size, int file, int copies);

/* A real peer, the victim, and two strangers. */
typedef struct scene {
  broker b;
  peer victim; /* observes "n", and keeps the last values of names with a "k" */
  int calls;   /* of the observer */
  int expelled; /* used by the tests */
  stranger s, other;
} scene;

void scene_start(scene *c);
void scene_end(scene *c);                  /* a new peer can still join */
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

/* Writes an unchecked entry for the victim at the head, and publishes it. */
void stranger_write(stranger *s, const entry *r, const void *behind, size_t size);
entry entry_for_victim(uint32_t name_size, uint32_t payload_size);

#endif
