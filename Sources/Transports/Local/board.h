/* The shared memory of a peer consists of a header, which is called the board, and a ring. Only the
 * peer itself can write to its shared memory. Other peers map it read-only, and validate all data
 * that they read. */

#ifndef MULTICAST_LOCAL_BOARD_H
#define MULTICAST_LOCAL_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEERS_MAX = 128, PLACE_WORDS = PEERS_MAX / 64 };

/* A set of peers. Bit N represents the peer in place N. */
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
static inline places places_in_both(const places *all, const places *others) {
  return (places){{all->words[0] & others->words[0], all->words[1] & others->words[1]}};
}
/* Loops over the places in a set. */
#define FOR_PLACES(place, all) \
  for (unsigned word_ = 0; word_ < PLACE_WORDS; ++word_) \
    for (uint64_t bits_ = (all)->words[word_], place; \
         bits_ != 0 && (place = word_ * 64u + (unsigned)__builtin_ctzll(bits_), true); \
         bits_ &= bits_ - 1)

/* The part of a board that contains the owner's data for one other peer. */
typedef struct slot {
  _Alignas(64) uint64_t tail; /* the board's owner has read the peer's ring up to this position */
  uint64_t begin;             /* there are no unread entries for the peer before this position */
  uint64_t dropped[2];        /* number of dropped entries for the peer before `counted` */
  uint64_t known; /* earlier notifications are kept for the peer, whatever their names */
} slot;

/* A position is the total number of bytes that have been written before it, so positions only
 * increase. Fields that several peers read often are in separate cache lines. */
typedef struct board {
  uint64_t magic, ring_size;
  _Alignas(64) uint64_t head; /* the ring is written up to this position */
  uint32_t is_waited_for;     /* readers must update their tails immediately */
  _Alignas(64) uint64_t oldest; /* earlier entries are or will be overwritten */
  uint64_t counted;             /* `dropped[counted & COUNT_BIT]` is valid for this position */
  _Alignas(64) uint32_t sleeps; /* odd while the peer's thread sleeps */
  slot slots[PEERS_MAX];
} board;

typedef enum entry_kind { ENTRY_NOTIFICATION, ENTRY_QUESTION, ENTRY_ANSWER } entry_kind;

/* The header of a ring entry. The header is followed by the name, without a NUL, and by the
 * payload. A question or an answer ends with the number of the question. */
typedef struct entry {
  uint32_t size; /* of the whole entry; a multiple of 8 */
  uint16_t name_size; /* 0 in an answer */
  uint16_t kind;
  uint32_t payload_size;
  uint32_t event; /* a multicast_status in an answer */
  places readers;
} entry;

static inline size_t number_size(unsigned kind) {
  return kind == ENTRY_NOTIFICATION ? 0 : sizeof(uint64_t);
}
static inline size_t entry_size(size_t name_size, size_t payload_size) {
  return (sizeof(entry) + name_size + payload_size + 7) & ~(size_t)7;
}

typedef struct memory {
  board *board; /* NULL if nothing is mapped */
  unsigned char *ring; /* mapped twice in succession, so that entries are contiguous */
  uint64_t ring_size;  /* a power of two */
} memory;

enum {
  RING_LEAST = 1 << 16,
  RING_MOST = 1 << 30,
  ENTRY_LEAST = sizeof(entry) + 8, /* the smallest entry, with a name */
  COUNT_BIT = 1                    /* free in `counted`, since positions are multiples of 8 */
};

/* Creates memory that only this process can write to. Returns the memory's file descriptor, or a
 * negative errno. */
int memory_create(memory *m, uint64_t ring_size);
/* Maps the memory of another process read-only. Returns 0 or an errno. EINVAL means that the file
 * is not valid. */
int memory_open(memory *m, int file);
void memory_close(memory *m);

static inline unsigned char *memory_at(const memory *m, uint64_t position) {
  return m->ring + (position & (m->ring_size - 1));
}

#endif
