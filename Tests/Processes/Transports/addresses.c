/* Tests that names and events are encoded as topics or subjects, and decoded. These tests need no
 * broker. */

#include "../../Behaviour/Interface/harness.h"
#include "../../../Sources/Transports/Common/Names/coding.h"

#include "library.h"

extern const coding transport_coding;

TEST(addresses_are_read_back) {
  char address[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1], again[NAME_MAX_SIZE + 1];
  uint32_t event;
  size_t written;
  for (int size = 1; size <= NAME_MAX_SIZE; size += 2) {
    for (int first = 0; first < 255; first += 5) {
      for (int i = 0; i < size; ++i) name[i] = (char)(1 + (first + i) % 255);
      name[size] = '\0';
      written = coding_write(&transport_coding, address, "a/.b", name, (uint32_t)first);
      CHECK_EQ(written, strlen(address));
      CHECK_EQ(coding_read(&transport_coding, address, "a/.b", again, &event), size);
      CHECK_EQ(event, first);
      CHECK_TEXT(again, name);
    }
  }
}

TEST(only_names_of_1_to_255_bytes_have_addresses) {
  char separator = transport_coding.separator;
  char name[NAME_MAX_SIZE + 2], address[ADDRESS_MAX_SIZE];
  uint32_t event;
  memset(name, 'a', sizeof name);
  name[NAME_MAX_SIZE + 1] = '\0';
  CHECK_EQ(coding_write(&transport_coding, address, "p", name, 1), 0);
  CHECK_EQ(coding_write(&transport_coding, address, "p", "", 1), 0);
  CHECK_EQ(coding_write_all(&transport_coding, address, "p", ""), 0);
  CHECK_EQ(coding_write(&transport_coding, address, "p", name + 1, UINT32_MAX), 2 + 255 + 1 + 10);
  CHECK_EQ(coding_read(&transport_coding, address, "p", name, &event), NAME_MAX_SIZE);
  CHECK_EQ(event, UINT32_MAX);
  memset(address + 2, 'a', NAME_MAX_SIZE + 1);
  address[2 + 256] = separator;
  memcpy(address + 2 + 257, "1", 2);
  CHECK_EQ(coding_read(&transport_coding, address, "p", name, &event), 0);
}

/* If a random address can be decoded, encoding the result must produce the same address. */
TEST(each_address_has_one_spelling) {
  char bytes[] = "p/%0123456789ABCDEFaf+#*>$ \x01\x7f\xc3/%p";
  char separator = transport_coding.separator;
  char address[32], again[ADDRESS_MAX_SIZE], name[NAME_MAX_SIZE + 1];
  unsigned seed = 1;
  int read = 0;
  for (char *byte = bytes; *byte != '\0'; ++byte) {
    if (*byte == '/') *byte = separator;
  }
  for (int round = 0; round < 2000000; ++round) {
    uint32_t event;
    seed = seed * 1103515245u + 12345u;
    size_t size = 3 + (seed >> 16) % 12;
    address[0] = 'p';
    address[1] = separator;
    for (size_t i = 2; i < size; ++i) {
      seed = seed * 1103515245u + 12345u;
      address[i] = bytes[(seed >> 16) % (sizeof bytes - 1)];
    }
    address[size] = '\0';
    if (coding_read(&transport_coding, address, "p", name, &event) == 0) continue;
    ++read;
    CHECK(coding_write(&transport_coding, again, "p", name, event) > 0);
    if (strchr(address + 2, separator) == NULL)
      snprintf(address + size, sizeof address - size, "%c0", separator);
    CHECK_TEXT(again, address);
  }
  CHECK(read > 1000);
}
