/* Tests peers that break the rules. A transport must disconnect such peers, must not read beyond
 * the peers' shared memory, and must continue to work. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "strangers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void expect_expelled(scene *c) {
  EVENTUALLY(LOAD(c->victim.expelled) == c->expelled + 1);
  ++c->expelled;
  CHECK_EQ(peer_stats(&c->victim).expelled, c->expelled);
  stranger_end(&c->s);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* An invalid packet, which a stranger sends either instead of its hello or after it. */
typedef struct packet {
  bool has_hello;
  uint32_t kind, place;
  size_t size; /* of `text`; SIZE_MAX means a packet that is shorter than any message */
  const char *text;
  int files;
} packet;

static char long_text[300];

static const packet packets[] = {
    {false, MESSAGE_WANT, 0, 2, "n", 0},   {false, MESSAGE_SYNC, 0, 0, "", 0},
    {false, MESSAGE_WAKE, 0, 0, "", 0},    {false, 0, 0, 0, "", 0},
    {false, 99, 0, 0, "", 0},              {false, MESSAGE_HELLO, 0, 2, "n", 0},
    {false, MESSAGE_HELLO, 0, 2, "n", 2},  {false, MESSAGE_HELLO, 0, 2, "n", 3},
    {false, MESSAGE_HELLO, 0, 2, "n", 30}, {false, MESSAGE_HELLO, 0, 0, "", 1},
    {false, MESSAGE_HELLO, 0, 1, "n", 1},  {false, MESSAGE_HELLO, 0, 4, "a\0b", 1},
    {false, MESSAGE_HELLO, 128, 2, "n", 1}, {false, MESSAGE_HELLO, 0, 100, long_text, 1},
    {false, MESSAGE_HELLO, UINT32_MAX, 2, "n", 1}, {false, MESSAGE_HELLO, 0, SIZE_MAX, NULL, 0},
    {true, MESSAGE_HELLO, 0, 2, "n", 1},   {true, MESSAGE_WANT, 0, 0, "", 0},
    {true, MESSAGE_WANT, 0, 1, "", 0},     {true, MESSAGE_WANT, 0, 1, "n", 0},
    {true, MESSAGE_WANT, 3, 2, "n", 0},    {true, MESSAGE_UNWANT, 3, 2, "n", 0},
    {true, MESSAGE_WANT, 2, 2, "n", 0},    {true, MESSAGE_UNWANT, 2, 2, "n", 0},
    {true, MESSAGE_WANT, 0, 4, "a\0b", 0}, {true, MESSAGE_WANT, 0, 257, long_text, 0},
    {true, MESSAGE_WANT, 0, 300, long_text, 0}, {true, MESSAGE_WANT, 0, 2, "n", 1},
    {true, MESSAGE_UNWANT, 0, 1, "", 0},   {true, MESSAGE_WAKE, 0, 2, "n", 0},
    {true, MESSAGE_SYNC, 0, 2, "n", 0},    {true, MESSAGE_DONE, 0, 0, "", 1},
    {true, MESSAGE_DONE + 1, 0, 0, "", 0}, {true, UINT32_MAX, 0, 0, "", 0},
    {true, MESSAGE_WAKE, 0, SIZE_MAX, NULL, 0}};

TEST_OF_SCENE(messages_that_are_none_end_the_connection) {
  memset(long_text, 'a', sizeof long_text - 1);
  for (row = 0; row < (int)(sizeof packets / sizeof *packets); ++row) {
    const packet *p = &packets[row];
    struct {
      message m;
      char more[100];
    } bytes;
    memset(&bytes, 0, sizeof bytes);
    bytes.m.kind = p->kind;
    bytes.m.place = p->place;
    if (p->text != NULL) memcpy(bytes.m.text, p->text, p->size);
    stranger_connect(&c->s, &c->b);
    if (p->has_hello) stranger_greet(&c->s);
    const size_t text = p->size == SIZE_MAX ? 0 : p->size;
    stranger_send(&c->s, &bytes, p->size == SIZE_MAX ? 5 : offsetof(message, text) + text,
                  c->s.file, p->files);
    expect_expelled(c);
  }
  row = -1;
}

TEST_OF_SCENE(peer_that_says_nothing_is_none) {
  stranger_connect(&c->s, &c->b);
  stranger_end(&c->s);
  pause_ms(A_WHILE_MS);
  CHECK_EQ(peer_stats(&c->victim).joined, 0);
  CHECK_EQ(LOAD(c->victim.gone) + LOAD(c->victim.expelled), 0);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { ALL_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10 /* F_SEAL_FUTURE_WRITE */ };

static int memory_file(size_t size, int seals) {
  int file = memfd_create("stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(file >= 0);
  CHECK_EQ(ftruncate(file, (off_t)size), 0);
  CHECK_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

TEST_OF_SCENE(memory_that_is_none_ends_the_connection) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t before = (sizeof(board) + page - 1) / page * page;
  int ends[2], files[12], count = 0;
  CHECK_EQ(pipe(ends), 0);
  files[count++] = ends[0];
  files[count++] = ends[1];
  files[count++] = open("/dev/null", O_RDWR);
  files[count++] = open("/etc/passwd", O_RDONLY);
  files[count++] = memory_file(before + STRANGER_RING, 0);
  files[count++] = memory_file(before + STRANGER_RING, ALL_SEALS & ~F_SEAL_SHRINK);
  files[count++] = memory_file(before + STRANGER_RING, ALL_SEALS & ~0x10);
  files[count++] = memory_file(0, ALL_SEALS);
  files[count++] = memory_file(before, ALL_SEALS);
  files[count++] = memory_file(before + STRANGER_RING / 2, ALL_SEALS);
  files[count++] = memory_file(before + STRANGER_RING + 4096, ALL_SEALS);
  files[count++] = memory_file(before + STRANGER_RING, ALL_SEALS); /* has no magic number */
  for (int i = 0; i < count; ++i) {
    stranger_connect(&c->s, &c->b);
    CHECK_EQ(message_send(c->s.socket, MESSAGE_HELLO, 0, 0, "stranger", files[i]), 0);
    close(files[i]);
    expect_expelled(c);
  }
  /* The stated size of the ring differs from the size of the file. */
  stranger_connect(&c->s, &c->b);
  c->s.own.board->ring_size = (uint64_t)STRANGER_RING * 2;
  stranger_greet(&c->s);
  expect_expelled(c);
}

/* ---- Rings ----------------------------------------------------------------------------------- */

/* An entry with wrong fields. */
typedef struct spoiled {
  uint32_t size, name_size, payload_size;
  const char *name;
} spoiled;

static const spoiled entries[] = {
    {0, 1, 1, "n"},           {8, 1, 1, "n"},
    {33, 1, 1, "n"},          {40, 0, 1, "n"},
    {40, 256, 1, "n"},        {40, UINT32_MAX, 1, "n"},
    {40, 1, 8, "n"},          {40, 1, UINT32_MAX, "n"},
    {40, 9, 0, "n"},          {40, 1, (1 << 15) + 1, "n"},
    {UINT32_MAX - 7, 1, 1, "n"}, {1 << 20, 1, 1, "n"},
    {40, 3, 1, "n\0n"},       {40, 2, 1, "n"},
    {1 << 16, 1, 1 << 30, "n"}};

TEST_OF_SCENE(entries_that_are_none_end_the_connection) {
  for (row = 0; row < (int)(sizeof entries / sizeof *entries); ++row) {
    const int calls = LOAD(c->calls);
    entry good = entry_for_victim(1, 2), bad = good;
    scene_meet(c, &c->s);
    stranger_write(&c->s, &good, "nxx", 3);
    EVENTUALLY(LOAD(c->calls) == calls + 1);
    bad.size = entries[row].size;
    bad.name_size = (uint16_t)entries[row].name_size;
    bad.payload_size = entries[row].payload_size;
    unsigned char *at = memory_at(&c->s.own, good.size);
    memcpy(at, &bad, sizeof bad);
    memcpy(at + sizeof bad, entries[row].name, 2);
    __atomic_store_n(&c->s.own.board->head, good.size + 40, __ATOMIC_RELEASE);
    stranger_say(&c->s, MESSAGE_WAKE, 0, NULL);
    expect_expelled(c);
    CHECK_EQ(LOAD(c->calls), calls + 1);
  }
  row = -1;
}

/* The stranger stores invalid positions as the head of its ring. Each position is before the
 * victim's reading position, beyond it by more than the size of the ring, or inside an entry. */
TEST_OF_SCENE(heads_that_are_none_end_the_connection) {
  static const uint64_t heads[] = {8, UINT64_MAX, UINT64_MAX / 2, 39, 1, 48};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; ++i) {
    const int calls = LOAD(c->calls);
    entry good = entry_for_victim(1, 2);
    scene_meet(c, &c->s);
    stranger_write(&c->s, &good, "nxx", 3);
    EVENTUALLY(LOAD(c->calls) == calls + 1);
    __atomic_store_n(&c->s.own.board->head, heads[i], __ATOMIC_RELEASE);
    stranger_say(&c->s, MESSAGE_WAKE, 0, NULL);
    expect_expelled(c);
  }
  /* `begin` is after the head. */
  stranger_connect(&c->s, &c->b);
  c->s.own.board->slots[VICTIM_PLACE].begin = 80;
  c->s.own.board->head = 40;
  stranger_greet(&c->s);
  expect_expelled(c);
}

static multicast_status publish(scene *c, const char *name) {
  static const char payload[1000];
  return peer_publish(&c->victim, name, 1, payload, sizeof payload);
}

/* Fills up the victim's ring. The stranger stores that it has read all earlier entries, and reads
 * none of the later entries. */
static void hold_up(scene *c) {
  stranger_connect(&c->s, &c->b);
  STORE(c->s.own.board->slots[VICTIM_PLACE].tail, c->s.its.board->head);
  stranger_greet(&c->s);
  stranger_say(&c->s, MESSAGE_WANT, 0, "mine");
  EVENTUALLY(publish(c, "mine") == MULTICAST_OK && peer_stats(&c->victim).sent > 0);
  while (publish(c, "mine") == MULTICAST_OK) {
  }
}

/* The stranger stores that it has read more entries than exist, or fewer entries than before. */
TEST_OF_SCENE(tails_that_are_none_end_the_connection) {
  static const uint64_t tails[] = {UINT64_MAX, 1 << 20, 1};
  for (size_t i = 0; i < sizeof tails / sizeof *tails; ++i) {
    hold_up(c);
    uint64_t *tail = &c->s.own.board->slots[VICTIM_PLACE].tail;
    STORE(*tail, c->s.its.board->head);
    EVENTUALLY(publish(c, "mine") == MULTICAST_OK);
    STORE(*tail, tails[i]);
    for (int k = 0; k < 200; ++k) publish(c, "mine");
    expect_expelled(c);
    /* The victim's ring has room again, because no peer has unread entries. */
    CHECK_OK(publish(c, "mine"));
  }
}

/* ---- Random writes --------------------------------------------------------------------------- */

/* A thread that writes random bytes to the stranger's ring while the victim reads it. */
typedef struct scribbler {
  stranger *s;
  int has_to_end;
  unsigned seed;
} scribbler;

THREAD(scribble, scribbler *w) {
  uint32_t *words = (uint32_t *)(void *)w->s->own.board;
  const size_t count = (size_t)(w->s->own.ring - (unsigned char *)w->s->own.board) / 4 +
                       STRANGER_RING / 4;
  while (!LOAD(w->has_to_end)) {
    w->seed = w->seed * 1664525u + 1013904223u;
    size_t at = 16 + (w->seed >> 8) % (count - 16);
    __atomic_store_n(&words[at], w->seed >> 28 == 0 ? w->seed : (w->seed >> 24) % 128,
                     __ATOMIC_RELAXED);
  }
}

/* No matter what the stranger writes, or when, the victim must not read outside the stranger's
 * memory, and must continue to work. */
TEST_OF_SCENE(peer_that_writes_anything_does_no_harm) {
  for (unsigned round = 0; round < 30; ++round) {
    scribbler w = {&c->s, 0, round};
    const int before = LOAD(c->victim.expelled);
    scene_meet(c, &c->s);
    pthread_t thread = start_thread(scribble, &w);
    for (int i = 0; i < 200 && LOAD(c->victim.expelled) == before; ++i) {
      entry r = entry_for_victim(1, (uint32_t)i);
      r.kind = (uint16_t)(i % 4);
      if (message_send(c->s.socket, MESSAGE_WAKE, 0, 0, NULL, -1) != 0) break;
      memcpy(memory_at(&c->s.own, LOAD(c->s.own.board->head)), &r, sizeof r);
      ADD(c->s.own.board->head, r.size);
      if (i % 16 == 0) pause_ms(1);
    }
    STORE(w.has_to_end, 1);
    join_thread(thread);
    stranger_end(&c->s);
    EVENTUALLY(peer_stats(&c->victim).joined == peer_stats(&c->victim).gone);
  }
}

/* ---- Other sockets --------------------------------------------------------------------------- */

/* In the group's folder, creates a socket that does not belong to a peer. A later peer must still
 * find the first peer. */
static void expect_no_peer(const broker *b, const char *name, int kind) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  SCOPED peer first, second;
  peer_connect_to(&first, b);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/tests/%s", b->folder, name);
  int s = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
  CHECK_EQ(bind(s, (const struct sockaddr *)&address, sizeof address), 0);
  if (kind != SOCK_DGRAM) CHECK_EQ(listen(s, 10), 0);
  peer_connect_to(&second, b);
  peer_meet(&second, 1);
  CHECK_EQ(unlink(address.sun_path), 0);
  close(s);
}

TEST_OF_BROKER(sockets_of_others_are_no_peers, NULL) {
  char long_name[64]; /* longer than the names of peers */
  snprintf(long_name, sizeof long_name, "%060d-1", 1);
  expect_no_peer(b, long_name, SOCK_SEQPACKET);
  expect_no_peer(b, "1-1", SOCK_STREAM);
  expect_no_peer(b, "1-1", SOCK_DGRAM);
}

/* ---- Heads that are too far ahead ------------------------------------------------------------ */

/* The victim skips all entries, because they are for other peers. The head is further ahead than
 * the size of the ring, so without a check the victim would read the ring again and again. */
TEST_OF_SCENE(head_that_is_further_than_the_ring_ends_the_connection) {
  stranger_connect(&c->s, &c->b);
  for (uint64_t at = 0; at < STRANGER_RING; at += 64) {
    const entry r = {.size = 64, .name_size = 1, .payload_size = 1, .event = 1};
    memcpy(memory_at(&c->s.own, at), &r, sizeof r);
  }
  STORE(c->s.own.board->head, (uint64_t)1 << 60);
  stranger_greet(&c->s);
  expect_expelled(c);
}

/* Writes `count` entries for the victim before the stranger's hello. Returns the size of an
 * entry. */
static uint64_t write_entries(scene *c, uint64_t count) {
  const entry r = entry_for_victim(1, 31);
  stranger_connect(&c->s, &c->b);
  for (uint64_t at = 0; at < count * r.size; at += r.size) {
    memcpy(memory_at(&c->s.own, at), &r, sizeof r);
    memset(memory_at(&c->s.own, at) + sizeof r, 'n', 32);
  }
  STORE(c->s.own.board->head, count * r.size);
  return r.size;
}

/* ---- Rings that are being written ------------------------------------------------------------ */

/* The stranger is interrupted while it drops its oldest entry, so the victim must wait before it
 * reads the next entry. When the stranger continues, it does not wake the victim, because its new
 * entry is for other peers. The victim must still deliver the remaining entry soon. */
TEST_OF_SCENE(what_is_left_when_others_had_the_oldest_dropped_arrives_soon) {
  const uint64_t size = write_entries(c, 2);
  board *its = c->s.own.board;
  its->slots[VICTIM_PLACE].dropped[0] = 1;
  STORE(its->oldest, size);
  stranger_greet(&c->s);
  EVENTUALLY(peer_stats(&c->victim).joined == 1);
  pause_ms(50);
  CHECK_EQ(LOAD(c->calls), 0);
  const uint64_t before = time_now();
  STORE(its->counted, size);
  EVENTUALLY(LOAD(c->calls) == 1);
  CHECK(time_now() - before < 400000000u);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).gone == 1);
}

/* ---- Lost entries ---------------------------------------------------------------------------- */

/* Writes `count` entries for the victim, and drops the first one. Returns the size of an entry. */
static uint64_t fill_ring(scene *c, uint64_t count) {
  const uint64_t size = write_entries(c, count);
  board *its = c->s.own.board;
  its->slots[VICTIM_PLACE].dropped[1] = 1;
  its->counted = size | COUNT_BIT;
  STORE(its->oldest, size);
  return size;
}

/* The stranger was killed while it dropped the second entry. That entry is still intact and must
 * not be counted as lost, although the stranger has already written the new count. */
TEST_OF_SCENE(what_was_being_dropped_at_a_kill_arrives) {
  const uint64_t size = fill_ring(c, 3);
  c->s.own.board->slots[VICTIM_PLACE].dropped[0] = 2;
  STORE(c->s.own.board->oldest, 2 * size);
  stranger_greet(&c->s);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).gone == 1);
  CHECK_EQ(LOAD(c->calls), 2);
  CHECK_EQ(peer_stats(&c->victim).overwritten, 1);
  CHECK_EQ(peer_stats(&c->victim).expelled, 0);
}

/* The stranger stores that it has dropped more entries than can fit into the ring. */
TEST_OF_SCENE(losses_that_are_too_many_end_the_connection) {
  for (uint64_t dropped = 2; dropped != 0; dropped *= 1 << 21) {
    fill_ring(c, 2);
    c->s.own.board->slots[VICTIM_PLACE].dropped[1] = dropped;
    stranger_greet(&c->s);
    expect_expelled(c);
    CHECK_EQ(peer_stats(&c->victim).overwritten, 0);
  }
}

/* The stranger was killed while it dropped the second entry. Before the kill, it stored a number of
 * dropped entries that exceeds the number of entries it had written. */
TEST_OF_SCENE(losses_that_are_too_many_at_a_kill_are_not_counted) {
  const uint64_t size = fill_ring(c, 3);
  c->s.own.board->slots[VICTIM_PLACE].dropped[1] = 1000;
  STORE(c->s.own.board->oldest, 2 * size);
  stranger_greet(&c->s);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).gone == 1);
  CHECK_EQ(LOAD(c->calls), 0);
  CHECK_EQ(peer_stats(&c->victim).overwritten, 0);
}

/* ---- Names that wait for room ---------------------------------------------------------------- */

/* The stranger observes a name with a retained value, but the victim's ring is full of entries that
 * the stranger has not read. The victim must not process the stranger's later messages until the
 * ring has room for the value. */
static void wait_for_room(scene *c) {
  CHECK_OK(publish(c, "kept"));
  hold_up(c);
  stranger_say(&c->s, MESSAGE_WANT, 0, "kept");
  pause_ms(A_WHILE_MS);
}

TEST_OF_SCENE(peer_that_waits_for_room_may_go) {
  wait_for_room(c);
  stranger_end(&c->s);
  EVENTUALLY(peer_stats(&c->victim).gone == 1);
  CHECK_EQ(peer_stats(&c->victim).expelled, 0);
}

TEST_OF_SCENE(peer_that_breaks_the_rules_while_it_waits_is_cut_off_then) {
  wait_for_room(c);
  stranger_greet(&c->s); /* a second hello is not allowed */
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(c->victim.expelled), 0);
  STORE(c->s.own.board->slots[VICTIM_PLACE].tail, LOAD(c->s.its.board->head));
  expect_expelled(c);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* The victim has no free descriptor for the stranger's memory. */
TEST_OF_SCENE(peer_whose_memory_finds_no_descriptor_breaks_no_rule) {
  struct rlimit most;
  message m;
  int file;
  stranger_connect(&c->s, &c->b);
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &most), 0);
  const struct rlimit less = {3, most.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  stranger_greet(&c->s);
  EVENTUALLY(message_receive(c->s.socket, &m, &file) == RECEIPT_END);
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
  CHECK_EQ(LOAD(c->victim.gone) + LOAD(c->victim.expelled), 0);
  stranger_end(&c->s);
}

/* A group has at most 129 peers, so the victim accepts at most PEERS_MAX other peers. */
TEST_OF_SCENE(one_peer_too_many_is_not_taken) {
  static stranger all[PEERS_MAX];
  message m;
  int file;
  for (int i = 0; i < PEERS_MAX; ++i) scene_meet(c, &all[i]);
  stranger_reach(&c->s, &c->b);
  EVENTUALLY(message_receive(c->s.socket, &m, &file) == RECEIPT_END);
  close(c->s.socket);
  for (int i = 0; i < PEERS_MAX; ++i) stranger_end(&all[i]);
  EVENTUALLY(peer_stats(&c->victim).gone == PEERS_MAX);
}
