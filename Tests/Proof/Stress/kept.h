/* Blocks that have ended are kept for a while, so that a late use is detected. */

#ifndef KEPT_H
#define KEPT_H

#include <stddef.h>

/* Frees the block, at once or later. */
void keep_for_a_while(void *block, size_t size);

/* Frees all that is kept. */
void kept_forget(void);

#endif
