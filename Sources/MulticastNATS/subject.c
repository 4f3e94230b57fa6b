/* Names as subjects, and back: one to one. */

#include "client.h"

#include <string.h>

static const char hexadecimal[] = "0123456789ABCDEF";

/* Whether a byte of a name stands for itself. */
static bool is_plain(unsigned char byte) {
  return byte > 0x20 && byte < 0x7f && byte != '.' && byte != '*' && byte != '>' && byte != '%';
}

bool subject_is_prefix(const char *prefix) {
  size_t size = strnlen(prefix, PREFIX_MAX_SIZE + 1), i;
  if (size == 0 || size > PREFIX_MAX_SIZE) return false;
  for (i = 0; i < size; ++i) {
    bool is_inside = i > 0 && i < size - 1 && prefix[i - 1] != '.';
    if (prefix[i] == '.' ? !is_inside : !is_plain((unsigned char)prefix[i]) && prefix[i] != '%')
      return false;
  }
  return true;
}

/* Writes "PREFIX.NAME.", without a NUL. */
static size_t write_name(char *subject, const char *prefix, const char *name) {
  size_t at = 0;
  const char *end = memchr(name, '\0', NAME_MAX_SIZE + 1);
  if (end == NULL || end == name) return 0;
  while (*prefix != '\0') subject[at++] = *prefix++;
  for (subject[at++] = '.'; name < end; ++name) {
    unsigned char byte = (unsigned char)*name;
    if (is_plain(byte)) {
      subject[at++] = *name;
    } else {
      subject[at++] = '%';
      subject[at++] = hexadecimal[byte / 16];
      subject[at++] = hexadecimal[byte % 16];
    }
  }
  subject[at++] = '.';
  return at;
}

size_t subject_write(char *subject, const char *prefix, const char *name, uint32_t event) {
  size_t at = write_name(subject, prefix, name);
  uint32_t divisor = 1;
  if (at == 0) return 0;
  while (event / divisor > 9) divisor *= 10;
  for (; divisor > 0; divisor /= 10) subject[at++] = (char)('0' + event / divisor % 10);
  subject[at] = '\0';
  return at;
}

size_t subject_write_wildcard(char *subject, const char *prefix, const char *name) {
  size_t at = write_name(subject, prefix, name);
  if (at > 0) memcpy(subject + at++, "*", 2);
  return at;
}

/* Reads the two digits of a byte that does not stand for itself; 0: there are none. */
static unsigned char read_escape(const char *digits) {
  const char *high = digits[0] == '\0' ? NULL : strchr(hexadecimal, digits[0]);
  const char *low = high == NULL || digits[1] == '\0' ? NULL : strchr(hexadecimal, digits[1]);
  unsigned char byte;
  if (low == NULL) return 0;
  byte = (unsigned char)((high - hexadecimal) * 16 + (low - hexadecimal));
  /* Another spelling would be a second subject of the same name. */
  return is_plain(byte) ? 0 : byte;
}

/* Reads a decimal number without leading zeros, to the end of the text. */
static bool read_event(const char *text, uint32_t *event) {
  size_t size = strspn(text, "0123456789"), i;
  uint64_t value = 0;
  if (size == 0 || size > 10 || text[size] != '\0' || (size > 1 && text[0] == '0')) return false;
  for (i = 0; i < size; ++i) value = value * 10 + (uint64_t)(text[i] - '0');
  *event = (uint32_t)value;
  return value <= UINT32_MAX;
}

size_t subject_read(const char *subject, const char *prefix, char *name, uint32_t *event) {
  size_t size = strlen(prefix), count = 0;
  if (strncmp(subject, prefix, size) != 0 || subject[size] != '.') return 0;
  for (subject += size + 1; *subject != '.'; ++subject) {
    unsigned char byte = (unsigned char)*subject;
    if (byte == '%') {
      byte = read_escape(subject + 1);
      if (byte == 0) return 0;
      subject += 2;
    } else if (!is_plain(byte)) {
      return 0; /* also at the end */
    }
    if (count == NAME_MAX_SIZE) return 0;
    name[count++] = (char)byte;
  }
  name[count] = '\0';
  return read_event(subject + 1, event) ? count : 0;
}
