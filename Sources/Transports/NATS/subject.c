#include "nats.h"

#include <string.h>

const coding subject_coding = {
    .separator = '.',
    .wildcard = '*',
    .special = CODING_BIT(' ') | CODING_BIT('.') | CODING_BIT('*') | CODING_BIT('>') |
               CODING_BIT('%'),
    .may_lack_event = false,
};

bool subject_is_prefix(const char *prefix) {
  size_t size = strnlen(prefix, PREFIX_MAX_SIZE + 1), i;
  if (size == 0 || size > PREFIX_MAX_SIZE) return false;
  for (i = 0; i < size; ++i) {
    bool is_inside = i > 0 && i < size - 1 && prefix[i - 1] != '.';
    bool may_stand = coding_is_plain(&subject_coding, (unsigned char)prefix[i]) || prefix[i] == '%';
    if (prefix[i] == '.' ? !is_inside : !may_stand) return false;
  }
  return true;
}
