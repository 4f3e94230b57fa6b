/* A pool of memory blocks of one size for small messages. Messages are allocated on one thread and
 * freed on another one, which is slow with malloc(), so their memory is reused. Each block comes
 * from malloc(), and may be freed. */

#ifndef MULTICAST_TRANSPORTS_BLOCKS_H
#define MULTICAST_TRANSPORTS_BLOCKS_H

#include <stddef.h>

/* A pool with more than BLOCKS_KEPT blocks is soon freed. */
enum { BLOCK_SIZE = 256, BLOCKS_KEPT = 8192 };

typedef struct block {
  struct block *next;
} block;

typedef struct blocks {
  block *first, *last;
  size_t count;
} blocks;

/* Returns NULL if there is no memory. */
void *blocks_take(blocks *kept);
/* Returns the memory of a message to the pool. Frees it if `size` is larger than a block. */
void blocks_give(blocks *kept, void *message, size_t size);
/* Moves all blocks. */
void blocks_move(blocks *to, blocks *from);
void blocks_free(blocks *kept);

#endif
