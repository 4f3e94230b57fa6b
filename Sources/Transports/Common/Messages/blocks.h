/* A pool of memory blocks of equal size for small messages. malloc() and free() are slow if memory
 * is allocated on one thread and freed on another, as it is for messages. The pool therefore reuses
 * the messages' memory. Each block has been allocated with malloc(), and may be passed to
 * free(). */

#ifndef MULTICAST_TRANSPORTS_BLOCKS_H
#define MULTICAST_TRANSPORTS_BLOCKS_H

#include <stddef.h>

/* If a client's pool contains more than BLOCKS_KEPT blocks after a poll, client_poll() frees the
 * whole pool. */
enum { BLOCK_SIZE = 256, BLOCKS_KEPT = 8192 };

typedef struct block {
  struct block *next;
} block;

typedef struct blocks {
  block *first, *last;
  size_t count;
} blocks;

/* Takes a block from the pool, or allocates one if the pool is empty. Returns NULL if there is no
 * memory. */
void *blocks_take(blocks *kept);
/* Returns the memory of a message to the pool, or frees it if `size` is larger than a block. */
void blocks_give(blocks *kept, void *message, size_t size);
/* Moves all blocks from one pool to another. */
void blocks_move(blocks *to, blocks *from);
void blocks_free(blocks *kept);

#endif
