/* Names and events as the addresses of an engine (topics, subjects), and back: one to one. */

#ifndef MULTICAST_TRANSPORTS_CODING_H
#define MULTICAST_TRANSPORTS_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NAME_MAX_SIZE = 255,
  PREFIX_MAX_SIZE = 200,
  ID_SIZE = 16, /* digits */
  /* Prefix, separator, mark, each byte of the name as %XX, separator, an event of ten digits,
   * NUL. */
  ADDRESS_MAX_SIZE = PREFIX_MAX_SIZE + 1 + 2 + 3 * NAME_MAX_SIZE + 1 + 10 + 1
};

/* Of a byte below 64. */
#define CODING_BIT(byte) ((uint64_t)1 << (byte))

typedef struct coding {
  char separator;
  char wildcard;       /* in the place of the event: all events */
  uint64_t special;    /* CODING_BIT() of each byte that is written as %XX, as all is that is not
                        * printable ASCII */
  bool may_lack_event; /* an address without an event has event 0 */
  const char *mark;    /* before the name: two bytes that begin none, or "" */
} coding;

/* The size of a name; 0: it is none. */
size_t name_size(const char *name);

/* Whether a byte of a name stands for itself. */
bool coding_is_plain(const coding *how, unsigned char byte);

/* Write the address of an event, or that of all events of a name, with a NUL. They return how many
 * bytes that takes without the NUL; 0: not a name. `address` has ADDRESS_MAX_SIZE bytes. */
size_t coding_write(const coding *how, char *address, const char *prefix, const char *name,
                    uint32_t event);
size_t coding_write_all(const coding *how, char *address, const char *prefix, const char *name);

/* Reads an address. `name` has NAME_MAX_SIZE + 1 bytes. Returns the size of the name; 0: it is not
 * an address of this library. */
size_t coding_read(const coding *how, const char *address, const char *prefix, char *name,
                   uint32_t *event);

/* Reads the digits of an id, hexadecimal ones, and goes on behind them. False: there are others. */
bool coding_read_id(const char **text, uint64_t *id);

/* Reads an event, the end of an address: a decimal number without leading zeros. */
bool coding_read_event(const char *text, uint32_t *event);

#endif
