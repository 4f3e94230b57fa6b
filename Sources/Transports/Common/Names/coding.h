/* Encodes names and events as addresses, which are MQTT topics or NATS subjects. The encoding is
 * one-to-one. */

#ifndef MULTICAST_TRANSPORTS_CODING_H
#define MULTICAST_TRANSPORTS_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NAME_MAX_SIZE = 255,
  PREFIX_MAX_SIZE = 200,
  ID_SIZE = 16, /* digits */
  /* The longest address consists of a prefix, a separator, a mark, a name whose bytes are all
   * written as %XX, a separator, an event of ten digits, and a NUL. */
  ADDRESS_MAX_SIZE = PREFIX_MAX_SIZE + 1 + 2 + 3 * NAME_MAX_SIZE + 1 + 10 + 1
};

/* The bit in `special` that stands for a byte below 64. */
#define CODING_BIT(byte) ((uint64_t)1 << (byte))

typedef struct coding {
  char separator;
  char wildcard;       /* replaces the event to match all events */
  /* CODING_BIT() of each printable character that is written as %XX. All bytes that are not
   * printable ASCII are also written as %XX. */
  uint64_t special;
  bool may_lack_event; /* an address without an event stands for event 0 */
  const char *mark;    /* precedes the name: "", or two bytes with which no encoded name begins */
} coding;

/* Returns the size of a name, or 0 if the name is not valid. */
size_t name_size(const char *name);

/* Returns whether a byte of a name is written unescaped. */
bool coding_is_plain(const coding *how, unsigned char byte);

/* Write the address of one event of a name, or the pattern that matches all events of the name. Add
 * a NUL. `address` must have room for ADDRESS_MAX_SIZE bytes. Return the size of the address
 * without the NUL, or 0 if the name is not valid. */
size_t coding_write(const coding *how, char *address, const char *prefix, const char *name,
                    uint32_t event);
size_t coding_write_all(const coding *how, char *address, const char *prefix, const char *name);

/* Decodes an address. `name` must have room for NAME_MAX_SIZE + 1 bytes. Returns the size of the
 * name, or 0 if coding_write() would never write this address. */
size_t coding_read(const coding *how, const char *address, const char *prefix, char *name,
                   uint32_t *event);

/* Reads the hexadecimal digits of an id, and advances `*text`. Returns false if a digit is not
 * valid. */
bool coding_read_id(const char **text, uint64_t *id);

/* Reads the event at the end of an address, which must be a decimal number without leading
 * zeros. */
bool coding_read_event(const char *text, uint32_t *event);

#endif
