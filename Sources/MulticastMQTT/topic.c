/* Names as topics, and back: one to one. */

#include "client.h"

#include <string.h>

/* Whether a byte stands for itself. */
static bool is_plain(unsigned char byte) {
  return byte >= 0x20 && byte <= 0x7e && strchr("+#/$%", byte) == NULL;
}

/* Writes "PREFIX/NAME/", without a NUL. */
static size_t write_name(char *topic, const char *prefix, const char *name) {
  static const char digits[] = "0123456789ABCDEF";
  size_t size = strnlen(name, NAME_MAX_SIZE + 1), at = 0, i;
  if (size == 0 || size > NAME_MAX_SIZE) return 0;
  while (*prefix != '\0') topic[at++] = *prefix++;
  topic[at++] = '/';
  for (i = 0; i < size; ++i) {
    unsigned char byte = (unsigned char)name[i];
    if (is_plain(byte)) {
      topic[at++] = (char)byte;
      continue;
    }
    topic[at++] = '%';
    topic[at++] = digits[byte >> 4];
    topic[at++] = digits[byte & 15];
  }
  topic[at++] = '/';
  return at;
}

size_t topic_write(char *topic, const char *prefix, const char *name, uint32_t event) {
  char digits[10];
  size_t at = write_name(topic, prefix, name), count = 0;
  if (at == 0) return 0;
  do {
    digits[count++] = (char)('0' + event % 10);
    event /= 10;
  } while (event != 0);
  while (count > 0) topic[at++] = digits[--count];
  topic[at] = '\0';
  return at;
}

size_t topic_write_filter(char *topic, const char *prefix, const char *name) {
  size_t at = write_name(topic, prefix, name);
  if (at == 0) return 0;
  topic[at++] = '#';
  topic[at] = '\0';
  return at;
}

/* The value of a digit as topics are written; -1: none. */
static int digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

/* Reads a decimal number without leading zeros, to the end of the text. */
static bool read_event(const char *text, uint32_t *event) {
  uint64_t value = 0;
  if (text[0] == '0' && text[1] != '\0') return false;
  if (text[0] == '\0') return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    value = value * 10 + (uint64_t)(*text - '0');
    if (value > UINT32_MAX) return false;
  }
  *event = (uint32_t)value;
  return true;
}

bool topic_read(const char *topic, const char *prefix, char *name, uint32_t *event) {
  size_t size = strlen(prefix), count = 0;
  if (strncmp(topic, prefix, size) != 0 || topic[size] != '/') return false;
  for (topic += size + 1; *topic != '\0' && *topic != '/'; ++topic) {
    int byte = (unsigned char)*topic;
    if (count == NAME_MAX_SIZE) return false;
    if (byte == '%') {
      int high = digit(topic[1]), low = high < 0 ? -1 : digit(topic[2]);
      if (low < 0) return false;
      byte = high * 16 + low;
      /* Another spelling would be a second topic of the same name. */
      if (byte == 0 || is_plain((unsigned char)byte)) return false;
      topic += 2;
    } else if (!is_plain((unsigned char)byte)) {
      return false;
    }
    name[count++] = (char)byte;
  }
  if (count == 0) return false;
  name[count] = '\0';
  *event = 0;
  return *topic == '\0' || read_event(topic + 1, event);
}
