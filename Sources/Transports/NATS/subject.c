#include "nats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUBJECT_SPECIAL                                                                   \
  (CODING_BIT(' ') | CODING_BIT('.') | CODING_BIT('*') | CODING_BIT('>') | CODING_BIT('%'))

const coding subject_coding = {
    .separator = '.',
    .wildcard = '*',
    .special = SUBJECT_SPECIAL,
    .may_lack_event = false,
    .mark = "",
};

const coding question_coding = {
    .separator = '.',
    .wildcard = '*',
    .special = SUBJECT_SPECIAL,
    .may_lack_event = false,
    .mark = "%?",
};

static const char inbox[] = "_INBOX.";

void subject_write_return(char *subject, origin to) {
  snprintf(subject, ADDRESS_MAX_SIZE, "%s%016" PRIX64 ".%016" PRIX64, inbox, to.peer, to.number);
}

bool subject_read_return(const char *subject, origin *to) {
  const char *at = subject + sizeof inbox - 1;
  if (strncmp(subject, inbox, sizeof inbox - 1) != 0 || !coding_read_id(&at, &to->peer) ||
      *at != '.')
    return false;
  ++at;
  return coding_read_id(&at, &to->number) && *at == '\0';
}

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
