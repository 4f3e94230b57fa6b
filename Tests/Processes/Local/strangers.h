/* Strangers are programs that talk to a transport like peers but may break the rules. Strangers use
 * the library's own functions for shared memory and messages. */

#ifndef STRANGERS_H
#define STRANGERS_H

#include "../../../Sources/Transports/Local/board.h"
#include "../../../Sources/Transports/Local/message.h"
#include "groups.h"

enum { STRANGER_RING = 1 << 16, VICTIM_PLACE = 7 };

typedef struct stranger {
  int socket;
  memory its; /* the memory that the victim shares */
  unsigned place; /* the stranger's place on the victim's board */
  memory own;
  int file; /* of the stranger's own memory */
} stranger;

/* Connects to the only peer of the group, which is the victim. */
void stranger_reach(stranger *s, const broker *b);
/* Like stranger_reach, but also receives the victim's hello and creates the stranger's own shared
 * memory. Sends nothing. */
void stranger_connect(stranger *s, const broker *b);
void stranger_end(stranger *s);

/* Sends a correct hello. */
void stranger_greet(const stranger *s);
void stranger_say(const stranger *s, message_kind kind, uint64_t number, const char *text);
/* Sends a packet, and attaches the descriptor `file` to it `copies` times. */
void stranger_send(const stranger *s, const void *bytes, size_t size, int file, int copies);

/* A victim, which is a real peer, and two strangers. */
typedef struct scene {
  broker b;
  peer victim; /* observes "n", and retains the values of names that begin with "k" */
  int calls;   /* of the observer */
  int expelled; /* the number of peers that the test expects to be disconnected */
  stranger s, other;
} scene;

void scene_start(scene *c);
void scene_end(scene *c);                  /* expects that a new peer can still join */
void scene_meet(const scene *c, stranger *s); /* connects and sends a hello, like a peer */

/* TEST_OF_SCENE(name) { ... } is a test with a scene `c`. */
#define TEST_OF_SCENE(NAME)            \
  static void NAME##_with(scene *c);   \
  TEST(NAME) {                         \
    scene c;                           \
    scene_start(&c);                   \
    NAME##_with(&c);                   \
    scene_end(&c);                     \
  }                                    \
  static void NAME##_with(scene *c)

/* Appends an entry to the stranger's ring, without checking it, and publishes the entry. */
void stranger_write(stranger *s, const entry *r, const void *behind, size_t size);
entry entry_for_victim(uint32_t name_size, uint32_t payload_size);

#endif
