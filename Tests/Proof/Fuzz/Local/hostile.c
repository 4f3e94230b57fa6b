#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hostile.h"

#include "expect.h"
#include "history.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

memory hostile_memory;
static int files[4]; /* the peer's memory, a file without seals, one that is too small, and none */
static int own;      /* the peer's socket */

void hostile_create(void) {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10; /* F_SEAL_FUTURE_WRITE */
  files[0] = memory_create(&hostile_memory, HOSTILE_RING);
  files[1] = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  files[2] = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  files[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT(files[0] >= 0 && files[3] >= 0, "no memory");
  EXPECT_EQ(ftruncate(files[1], (off_t)sizeof(board) + HOSTILE_RING), 0);
  EXPECT_EQ(ftruncate(files[2], 100), 0);
  EXPECT_EQ(fcntl(files[2], F_ADD_SEALS, seals), 0);
}

int hostile_connect(void) {
  int ends[2];
  board *b = hostile_memory.board;
  const uint64_t magic = b->magic;
  memset(b, 0, sizeof *b);
  memset(hostile_memory.ring, 0, HOSTILE_RING);
  b->magic = magic;
  b->ring_size = HOSTILE_RING;
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  own = ends[0];
  return ends[1];
}

void hostile_disconnect(void) { close(own); }

const char *hostile_name(unsigned number) {
  static const char *const names[] = {"n", "mine", "a.much.longer.name.of.something", "x"};
  return names[number % 4];
}

/* ---- The steps of the peer ------------------------------------------------------------------- */

/* Sends a packet. `where` determines the kind of packet and the attached file. `size` determines
 * the size of the text, whether the text ends with NUL, and the number of files. */
static void say(const step *s) {
  struct {
    message m;
    char more[64];
  } bytes;
  const size_t text = s->size % 320;
  const unsigned count = (s->size >> 9) % 4;
  struct iovec part = {&bytes, offsetof(message, text) + text};
  struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(3 * sizeof(int))];
  } control;
  memset(&bytes, 0, sizeof bytes);
  memset(&control, 0, sizeof control);
  bytes.m.kind = s->where % 8;
  bytes.m.place = s->small;
  bytes.m.number = s->large;
  memset(bytes.m.text, 'n', text);
  if (text > 0 && s->size < 0x8000) bytes.m.text[text - 1] = '\0';
  if (s->size >> 13 == 1) part.iov_len = text % 16;
  if (count > 0) {
    packet.msg_control = &control;
    packet.msg_controllen = CMSG_SPACE(count * sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    for (unsigned i = 0; i < count; ++i)
      memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &files[s->where / 8 % 4], sizeof(int));
  }
  NOTE("says %lld, place %lld, number %lld, %lld bytes, %lld files", bytes.m.kind, bytes.m.place,
       (long long)bytes.m.number, (long long)part.iov_len, count);
  sendmsg(own, &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static uint64_t *word_of_board(unsigned which) {
  board *b = hostile_memory.board;
  slot *its = &b->slots[HOSTILE_PLACE];
  uint64_t *const words[] = {&b->head,   &b->oldest,       &b->counted, &its->begin,
                             &its->tail, &its->dropped[0], &its->dropped[1]};
  return words[which % 7];
}

/* Writes a word of the shared header. `size` determines how the number is interpreted. */
static void show(const step *s) {
  uint64_t *word = word_of_board(s->where), value = s->large;
  if (s->size % 4 == 1) value = *word + s->small % 256 * (uint64_t)8;
  if (s->size % 4 == 2) value = *word_of_board(s->small) + s->large % 4096;
  if (s->size % 4 == 3) value = s->small;
  NOTE("shows %lld: %lld", s->where % 7, (long long)value);
  *word = value;
}

static void scribble(const step *s) {
  const size_t place = s->small % (HOSTILE_RING / 8) * (size_t)8;
  NOTE("writes %lld to %lld", (long long)s->large, (long long)place);
  memcpy(hostile_memory.ring + place, &s->large, 8);
}

static uint32_t whole_size(uint32_t name_size, uint32_t payload_size) {
  return (uint32_t)(sizeof(entry) + name_size + payload_size + 7) & ~7u;
}

/* Writes an entry. `where` determines the mistake, the kind of entry, and whether an answer is
 * correct. The head moves by the size of the entry, if possible. */
static void write_entry(const step *s) {
  board *b = hostile_memory.board;
  const uint16_t kind = s->where / 8 % 4;
  const char *name = kind == ENTRY_ANSWER ? "" : hostile_name(s->small);
  const uint32_t name_size = (uint32_t)strlen(name), payload = s->size % 1024;
  const uint32_t number = kind == ENTRY_NOTIFICATION ? 0 : sizeof s->large;
  const uint64_t question = s->where / 64 % 2 == 0 ? s->large % 4 : s->large; /* 1: the first */
  const uint32_t size = whole_size(name_size, payload + number);
  entry r = {size, (uint16_t)name_size, kind, payload, s->small / 4, {{0, 0}}};
  unsigned char *at = memory_at(&hostile_memory, b->head);
  if (kind == ENTRY_ANSWER && s->where / 32 % 2 == 0) r.event = 0;
  if (s->where % 8 != 1) places_add(&r.readers, HOSTILE_PLACE);
  if (s->where % 8 == 2) r.size = (uint32_t)s->large;
  if (s->where % 8 == 3) r.name_size = (uint16_t)s->large;
  if (s->where % 8 == 4) r.payload_size = (uint32_t)s->large;
  if (s->where % 8 == 5) {
    r.payload_size = (uint32_t)(s->large % ((uint64_t)2 * HOSTILE_RING));
    r.size = whole_size(name_size, r.payload_size + number);
  }
  if (s->where % 8 == 6) {
    r.name_size = (uint16_t)(name_size + payload);
    r.payload_size = 0;
  }
  NOTE("writes an entry: size %lld, name %lld, payload %lld", r.size, r.name_size, r.payload_size);
  memcpy(at, &r, sizeof r);
  memcpy(at + sizeof r, name, name_size); /* NOLINT(bugprone-not-null-terminated-result) */
  memset(at + sizeof r + name_size, 'p', payload);
  memcpy(at + sizeof r + name_size + payload, &question, number);
  b->head += r.size <= HOSTILE_RING && r.size % 8 == 0 ? r.size : size;
}

void hostile_do(const step *s) {
  static void (*const all[])(const step *) = {say, show, scribble, write_entry};
  all[s->what % (sizeof all / sizeof *all)](s);
}
