/* A quarantine: freed blocks are poisoned and kept for a while, so that a use after free is
 * detected. */

#ifndef KEPT_H
#define KEPT_H

#include <stddef.h>

/* Frees the block, either immediately or later. */
void keep_for_a_while(void *block, size_t size);

/* Frees all blocks in the quarantine. */
void kept_forget(void);

#endif
