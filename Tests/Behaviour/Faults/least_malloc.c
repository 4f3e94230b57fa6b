/* Replaces malloc() if preloaded with LD_PRELOAD. Blocks are never aligned better than promised: to
 * 16 bytes, or to the alignment that the caller requests. This malloc() fills blocks with a pattern
 * and detects double frees. */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Lets a program detect whether this library is loaded. */
int least_malloc_is_loaded = 1;

/* Precedes each block. */
typedef struct header {
  uint32_t state;  /* FREE, or IN_USE with the kind of the chunk in the high bits */
  uint32_t offset; /* the distance from the start of its chunk */
  uint64_t size;   /* the requested size */
} header;
enum { IN_USE = 0x1EA57, FREE = 0xF4EE };
enum { LEAST = 16, SMALLEST = 6, LARGEST_OF_ARENA = 20, ARENA = 1 << 22 };
enum { TOO_LARGE_TO_FILL = 65536 };

/* A piece of an arena. It contains one block, and its size is a power of two. */
typedef struct chunk {
  struct chunk *next; /* the next vacant chunk */
} chunk;
static chunk *vacant[LARGEST_OF_ARENA + 1];
static char *arena;
static size_t arena_left;
static char is_locked;

static void lock(void) {
  while (__atomic_test_and_set(&is_locked, __ATOMIC_ACQUIRE)) sched_yield();
}
static void unlock(void) { __atomic_clear(&is_locked, __ATOMIC_RELEASE); }

__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(lock, unlock, unlock); }

static void *map(size_t size) {
  void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? NULL : block;
}

/* If the arena is too small, a new arena replaces it, and the unused part of the old arena is
 * wasted. */
static void *take(unsigned kind) {
  const size_t size = (size_t)1 << kind;
  if (kind > LARGEST_OF_ARENA) return map(size);
  lock();
  void *taken = vacant[kind];
  if (taken != NULL) {
    vacant[kind] = vacant[kind]->next;
  } else {
    if (arena_left < size) {
      arena = map(ARENA);
      arena_left = arena == NULL ? 0 : ARENA;
    }
    if (arena_left >= size) {
      taken = arena;
      arena += size;
      arena_left -= size;
    }
  }
  unlock();
  return taken;
}

static void give_back(void *given, unsigned kind) {
  chunk *c = given;
  if (kind > LARGEST_OF_ARENA) {
    int error = errno;
    munmap(given, (size_t)1 << kind);
    errno = error;
    return;
  }
  lock();
  c->next = vacant[kind];
  vacant[kind] = c;
  unlock();
}

static header *header_of(void *block) { return (header *)block - 1; }

static unsigned kind_for(size_t size, size_t alignment) {
  unsigned kind = SMALLEST;
  while ((size_t)1 << kind < size + 2 * alignment + sizeof(header)) ++kind;
  return kind;
}

static void *allocate(size_t size, size_t alignment) {
  if (alignment < LEAST) alignment = LEAST;
  if (size > SIZE_MAX >> (sizeof(size_t) == 8 ? 24 : 2)) return NULL;
  unsigned kind = kind_for(size, alignment);
  char *begin = take(kind);
  if (begin == NULL) return NULL;
  /* move the block to an odd multiple of the alignment */
  char *block = begin + sizeof(header);
  block += 2 * alignment - 1 - ((uintptr_t)block + alignment - 1) % (2 * alignment);
  header_of(block)->state = IN_USE | kind << 24;
  header_of(block)->offset = (uint32_t)(block - begin);
  header_of(block)->size = size;
  if (size < TOO_LARGE_TO_FILL) memset(block, 0xA5, size);
  return block;
}

static void deallocate(void *block) {
  header *h = header_of(block);
  const unsigned kind = h->state >> 24;
  if ((h->state & 0xFFFFFF) != IN_USE) abort();
  h->state = FREE;
  if (h->size < TOO_LARGE_TO_FILL) memset(block, 0x5A, h->size);
  give_back((char *)block - h->offset, kind);
}

static void *result_of(void *block) {
  if (block == NULL) errno = ENOMEM;
  return block;
}

/* ---- Replacements for libc functions --------------------------------------------------------- */

void *malloc(size_t size) { return result_of(allocate(size, LEAST)); }

void free(void *block) {
  if (block != NULL) deallocate(block);
}

void *calloc(size_t count, size_t size) {
  void *block = size == 0 || count <= SIZE_MAX / size ? allocate(count * size, LEAST) : NULL;
  if (block != NULL) memset(block, 0, count * size);
  return result_of(block);
}

void *realloc(void *block, size_t size) {
  void *other = result_of(allocate(size, LEAST));
  if (block == NULL || other == NULL) return other;
  memcpy(other, block, header_of(block)->size < size ? header_of(block)->size : size);
  deallocate(block);
  return other;
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) { return result_of(allocate(size, alignment)); }

void *aligned_alloc(size_t alignment, size_t size) { return result_of(allocate(size, alignment)); }

int posix_memalign(void **out, size_t alignment, size_t size) {
  void *block = allocate(size, alignment);
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}

size_t malloc_usable_size(void *block);
size_t malloc_usable_size(void *block) {
  return block == NULL ? 0 : (size_t)header_of(block)->size;
}
