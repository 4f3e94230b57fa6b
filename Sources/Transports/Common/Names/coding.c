#include "coding.h"

#include <string.h>

static const char hexadecimal[] = "0123456789ABCDEF";

size_t name_size(const char *name) {
  const char *end = name == NULL ? NULL : memchr(name, '\0', NAME_MAX_SIZE + 1);
  return end == NULL ? 0 : (size_t)(end - name);
}

bool coding_is_plain(const coding *how, unsigned char byte) {
  if (byte >= 64) return byte <= 0x7e;
  return byte >= 0x20 && (how->special >> byte & 1) == 0;
}

/* Writes the prefix, a separator, the mark, the encoded name and another separator. Adds no NUL. */
static size_t write_name(const coding *how, char *address, const char *prefix, const char *name) {
  size_t size = name_size(name), at = 0, i;
  if (size == 0) return 0;
  while (*prefix != '\0') address[at++] = *prefix++;
  address[at++] = how->separator;
  for (i = 0; how->mark[i] != '\0'; ++i) address[at++] = how->mark[i];
  for (i = 0; i < size; ++i) {
    unsigned char byte = (unsigned char)name[i];
    if (coding_is_plain(how, byte)) {
      address[at++] = name[i];
    } else {
      address[at++] = '%';
      address[at++] = hexadecimal[byte / 16];
      address[at++] = hexadecimal[byte % 16];
    }
  }
  address[at++] = how->separator;
  return at;
}

size_t coding_write(const coding *how, char *address, const char *prefix, const char *name,
                    uint32_t event) {
  size_t at = write_name(how, address, prefix, name), size = 0;
  char digits[10];
  if (at == 0) return 0;
  do digits[size++] = (char)('0' + event % 10);
  while ((event /= 10) > 0);
  while (size > 0) address[at++] = digits[--size];
  address[at] = '\0';
  return at;
}

size_t coding_write_all(const coding *how, char *address, const char *prefix, const char *name) {
  size_t at = write_name(how, address, prefix, name);
  if (at == 0) return 0;
  address[at++] = how->wildcard;
  address[at] = '\0';
  return at;
}

/* Reads the two digits of an escaped byte. Returns 0 if the escape sequence is not valid. */
static unsigned char read_escape(const coding *how, const char *digits) {
  const char *high = digits[0] == '\0' ? NULL : strchr(hexadecimal, digits[0]);
  const char *low = high == NULL || digits[1] == '\0' ? NULL : strchr(hexadecimal, digits[1]);
  unsigned char byte;
  if (low == NULL) return 0;
  byte = (unsigned char)((high - hexadecimal) * 16 + (low - hexadecimal));
  /* Bytes that need no escape must not be escaped, because a name must have only one
   * address. */
  return coding_is_plain(how, byte) ? 0 : byte;
}

bool coding_read_id(const char **text, uint64_t *id) {
  int i;
  *id = 0;
  for (i = 0; i < ID_SIZE; ++i) {
    const char *digit = **text == '\0' ? NULL : strchr(hexadecimal, **text);
    if (digit == NULL) return false;
    *id = *id << 4 | (uint64_t)(digit - hexadecimal);
    ++*text;
  }
  return true;
}

bool coding_read_event(const char *text, uint32_t *event) {
  uint64_t value = 0;
  size_t size;
  for (size = 0; size <= 10 && text[size] >= '0' && text[size] <= '9'; ++size)
    value = value * 10 + (uint64_t)(text[size] - '0');
  if (size == 0 || size > 10 || text[size] != '\0' || (size > 1 && text[0] == '0')) return false;
  *event = (uint32_t)value;
  return value <= UINT32_MAX;
}

size_t coding_read(const coding *how, const char *address, const char *prefix, char *name,
                   uint32_t *event) {
  size_t count = 0;
  while (*prefix != '\0') {
    if (*address++ != *prefix++) return 0;
  }
  if (*address++ != how->separator) return 0;
  for (prefix = how->mark; *prefix != '\0'; ++prefix) {
    if (*address++ != *prefix) return 0;
  }
  for (; *address != '\0' && *address != how->separator; ++address) {
    unsigned char byte = (unsigned char)*address;
    if (byte == '%') {
      byte = read_escape(how, address + 1);
      if (byte == 0) return 0;
      address += 2;
    } else if (!coding_is_plain(how, byte)) {
      return 0;
    }
    if (count == NAME_MAX_SIZE) return 0;
    name[count++] = (char)byte;
  }
  name[count] = '\0';
  *event = 0;
  if (*address == '\0') return how->may_lack_event ? count : 0;
  return coding_read_event(address + 1, event) ? count : 0;
}
