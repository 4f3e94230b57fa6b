#include "blocks.h"

#include <stdlib.h>

void *blocks_take(blocks *kept) {
  block *b = kept->first;
  if (b == NULL) return malloc(BLOCK_SIZE);
  kept->first = b->next;
  --kept->count;
  return b;
}

void blocks_give(blocks *kept, void *message, size_t size) {
  block *b = message;
  if (size > BLOCK_SIZE) {
    free(b);
    return;
  }
  b->next = kept->first;
  if (kept->first == NULL) kept->last = b;
  kept->first = b;
  ++kept->count;
}

void blocks_move(blocks *to, blocks *from) {
  if (from->first == NULL) return;
  from->last->next = to->first;
  if (to->first == NULL) to->last = from->last;
  to->first = from->first;
  to->count += from->count;
  from->first = NULL;
  from->count = 0;
}

void blocks_free(blocks *kept) {
  while (kept->first != NULL) {
    block *b = kept->first;
    kept->first = b->next;
    free(b);
  }
  kept->count = 0;
}
