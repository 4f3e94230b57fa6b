/* Encodes names as topics, and reads and writes the headers of messages. */

#include "mqtt.h"

#include <string.h>

#define TOPIC_SPECIAL                                                                     \
  (CODING_BIT('+') | CODING_BIT('#') | CODING_BIT('/') | CODING_BIT('$') | CODING_BIT('%'))

const coding topic_coding = {
    .separator = '/',
    .wildcard = '#',
    .special = TOPIC_SPECIAL,
    .may_lack_event = true,
    .mark = "",
};

const coding question_coding = {
    .separator = '/',
    .wildcard = '#',
    .special = TOPIC_SPECIAL,
    .may_lack_event = true,
    .mark = "%?",
};

/* No UTF-8 text begins with these bytes. */
static const unsigned char mark[3] = {0x93, 0x4d, 0x43};
enum { VERSION = 1 };

message_kind message_read(const void *message, size_t size) {
  static const unsigned char zeros[4] = {0, 0, 0, 0};
  const unsigned char *bytes = message;
  if (size < sizeof mark || memcmp(bytes, mark, sizeof mark) != 0) return MESSAGE_PLAIN;
  if (size < HEADER_SIZE || bytes[3] != VERSION) return MESSAGE_UNKNOWN;
  return memcmp(bytes + 4, zeros, sizeof zeros) == 0 ? MESSAGE_OURS : MESSAGE_UNKNOWN;
}

void message_write_header(unsigned char *header, const uint64_t *sender) {
  memset(header, 0, HEADER_SIZE);
  memcpy(header, mark, sizeof mark);
  header[3] = VERSION;
  memcpy(header + HEADER_SIZE - SENDER_SIZE, sender, SENDER_SIZE);
}
