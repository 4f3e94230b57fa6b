/* Blocks of memory of one size, for small messages. One thread takes them and another one gives
 * them back: that is slow with malloc(), so they are kept for the next messages. Each one is from
 * malloc(), and may be freed. */

#ifndef MULTICAST_TRANSPORTS_BLOCKS_H
#define MULTICAST_TRANSPORTS_BLOCKS_H

#include <stddef.h>

/* More than BLOCKS_KEPT are not kept for long. */
enum { BLOCK_SIZE = 256, BLOCKS_KEPT = 8192 };

typedef struct block {
  struct block *next;
} block;

typedef struct blocks {
  block *first, *last;
  size_t count;
} blocks;

/* NULL: out of memory. */
void *blocks_take(blocks *kept);
/* Gives back the memory of a message of so many bytes. That of a larger one is freed. */
void blocks_give(blocks *kept, void *message, size_t size);
/* Empties `from` into `to`. */
void blocks_move(blocks *to, blocks *from);
void blocks_free(blocks *kept);

#endif
