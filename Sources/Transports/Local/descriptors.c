#include "descriptors.h"

#include "../Common/process.h"

#include <errno.h>
#include <unistd.h>

/* Linux's default limit. Tests define a lower one. */
#ifndef DESCRIPTORS_MAX
#define DESCRIPTORS_MAX (1 << 20)
#endif
enum { WORD_BITS = 64, WORDS = DESCRIPTORS_MAX / WORD_BITS };

/* One bit for each descriptor. Protected by process_lock(). Pages that are never used occupy no
 * memory. */
static uint64_t recorded[WORDS];
static int used_words; /* the words from this index on are zero */

int descriptor_record(int descriptor) {
  const int word = descriptor / WORD_BITS;
  if (descriptor < 0) return descriptor;
  if (word >= WORDS) {
    close(descriptor);
    errno = EMFILE;
    return -1;
  }
  recorded[word] |= (uint64_t)1 << descriptor % WORD_BITS;
  if (word >= used_words) used_words = word + 1;
  return descriptor;
}

void descriptor_close(int descriptor) {
  process_lock();
  recorded[descriptor / WORD_BITS] &= ~((uint64_t)1 << descriptor % WORD_BITS);
  close(descriptor);
  process_unlock();
}

void descriptors_close_in_child(void) {
  int word;
  for (word = 0; word < used_words; ++word) {
    for (; recorded[word] != 0; recorded[word] &= recorded[word] - 1)
      close(word * WORD_BITS + __builtin_ctzll(recorded[word]));
  }
}
