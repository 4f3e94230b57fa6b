/* The memory that a peer shows to the others: a board and a ring. Only this peer writes it; the
 * others have it for reading, and believe nothing of it. */

#ifndef MULTICAST_LOCAL_BOARD_H
#define MULTICAST_LOCAL_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEERS_MAX = 128, PLACE_WORDS = PEERS_MAX / 64 };

/* A set of peers, by their places. */
typedef struct places {
  uint64_t words[PLACE_WORDS];
} places;

static inline bool places_have(const places *all, unsigned place) {
  return (all->words[place / 64] >> place % 64 & 1) != 0;
}
static inline void places_add(places *all, unsigned place) {
  all->words[place / 64] |= (uint64_t)1 << place % 64;
}
static inline void places_remove(places *all, unsigned place) {
  all->words[place / 64] &= ~((uint64_t)1 << place % 64);
}
static inline bool places_are_none(const places *all) {
  return (all->words[0] | all->words[1]) == 0;
}
static inline places places_with(const places *all, const places *others) {
  return (places){{all->words[0] | others->words[0], all->words[1] | others->words[1]}};
}
static inline places places_without(const places *all, const places *others) {
  return (places){{all->words[0] & ~others->words[0], all->words[1] & ~others->words[1]}};
}
/* Calls for each place in a set. */
#define FOR_PLACES(place, all) \
  for (unsigned word_ = 0; word_ < PLACE_WORDS; ++word_) \
    for (uint64_t bits_ = (all)->words[word_], place; \
         bits_ != 0 && (place = word_ * 64u + (unsigned)__builtin_ctzll(bits_), true); \
         bits_ &= bits_ - 1)

/* The part of a board for one peer. */
typedef struct slot {
  _Alignas(64) uint64_t tail; /* so far the peer's ring was read */
  uint64_t begin;             /* before this there is nothing that the peer has to read */
  uint64_t dropped[2];        /* of what was for the peer, so much was before `counted` */
  uint64_t known; /* publications before this are for the peer whatever their names */
} slot;

/* Positions count bytes from the beginning of the ring's life. What several peers look at often is
 * in lines of its own. */
typedef struct board {
  uint64_t magic, ring_size;
  _Alignas(64) uint64_t head; /* up to here the ring is written */
  uint32_t is_waited_for;     /* readers say at once how far they are */
  _Alignas(64) uint64_t oldest; /* before this it is or will be overwritten */
  uint64_t counted;             /* what `dropped` of the slots is about, and which one: COUNT_BIT */
  _Alignas(64) uint32_t sleeps; /* odd: the peer's thread sleeps */
  slot slots[PEERS_MAX];
} board;

typedef enum entry_kind { ENTRY_NOTIFICATION, ENTRY_QUESTION, ENTRY_ANSWER } entry_kind;

/* An entry of the ring. Behind it are the name, without a NUL, the payload, and, but of a
 * notification, the number of the question. */
typedef struct entry {
  uint32_t size; /* of all, a multiple of 8 */
  uint16_t name_size; /* of an answer: 0 */
  uint16_t kind;
  uint32_t payload_size;
  uint32_t event; /* of an answer: a multicast_status */
  places readers;
} entry;

static inline size_t number_size(unsigned kind) {
  return kind == ENTRY_NOTIFICATION ? 0 : sizeof(uint64_t);
}
static inline size_t entry_size(size_t name_size, size_t payload_size) {
  return (sizeof(entry) + name_size + payload_size + 7) & ~(size_t)7;
}

typedef struct memory {
  board *board; /* NULL: none */
  unsigned char *ring; /* is there twice, one behind the other: entries have no gap */
  uint64_t ring_size;  /* a power of two */
} memory;

enum {
  RING_LEAST = 1 << 16,
  RING_MOST = 1 << 30,
  ENTRY_LEAST = sizeof(entry) + 8, /* with a name */
  COUNT_BIT = 1                    /* positions are multiples of 8 */
};

/* Makes one that only this process can write. The descriptor of its file; negative: an errno. */
int memory_create(memory *m, uint64_t ring_size);
/* Has one of another process for reading. An errno; EINVAL: it is none. */
int memory_open(memory *m, int file);
void memory_close(memory *m);

static inline unsigned char *memory_at(const memory *m, uint64_t position) {
  return m->ring + (position & (m->ring_size - 1));
}

#endif
