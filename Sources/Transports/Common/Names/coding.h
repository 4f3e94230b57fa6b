/* A one-to-one encoding of names and events as addresses: MQTT topics or NATS subjects. */

#ifndef MULTICAST_TRANSPORTS_CODING_H
#define MULTICAST_TRANSPORTS_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NAME_MAX_SIZE = 255,
  PREFIX_MAX_SIZE = 200,
  ID_SIZE = 16, /* digits */
  /* The prefix, a separator, the mark, all bytes of the name as %XX, a separator, an event of ten
   * digits, and a NUL. */
  ADDRESS_MAX_SIZE = PREFIX_MAX_SIZE + 1 + 2 + 3 * NAME_MAX_SIZE + 1 + 10 + 1
};

/* The bit for a byte below 64 in `special`. */
#define CODING_BIT(byte) ((uint64_t)1 << (byte))

typedef struct coding {
  char separator;
  char wildcard;       /* replaces the event to match all events */
  uint64_t special;    /* CODING_BIT() of the printable characters that are written as %XX, in
                        * addition to all bytes that are not printable ASCII */
  bool may_lack_event; /* an address without an event has event 0 */
  const char *mark;    /* precedes the name: "", or two bytes with which no encoded name begins */
} coding;

/* Returns the size of a name, or 0 if the name is not valid. */
size_t name_size(const char *name);

/* Returns whether a byte of a name is written without an escape. */
bool coding_is_plain(const coding *how, unsigned char byte);

/* Write the address of one event, or of all events, of a name, with a NUL. `address` has
 * ADDRESS_MAX_SIZE bytes. Return the size of the address without the NUL, or 0 if the name is not
 * valid. */
size_t coding_write(const coding *how, char *address, const char *prefix, const char *name,
                    uint32_t event);
size_t coding_write_all(const coding *how, char *address, const char *prefix, const char *name);

/* Decodes an address. `name` has NAME_MAX_SIZE + 1 bytes. Returns the size of the name, or 0 if the
 * address does not have the form that coding_write() writes. */
size_t coding_read(const coding *how, const char *address, const char *prefix, char *name,
                   uint32_t *event);

/* Reads the hexadecimal digits of an id, and advances `*text`. Returns false if a digit is not
 * valid. */
bool coding_read_id(const char **text, uint64_t *id);

/* Reads the event at the end of an address, a decimal number without leading zeros. */
bool coding_read_event(const char *text, uint32_t *event);

#endif
