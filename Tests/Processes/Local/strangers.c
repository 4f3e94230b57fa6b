#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "strangers.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void find_socket(const broker *b, char *path, size_t size) {
  char folder[64];
  snprintf(folder, sizeof folder, "%s/tests", b->folder);
  DIR *files = opendir(folder);
  CHECK(files != NULL);
  path[0] = '\0';
  for (const struct dirent *e; (e = readdir(files)) != NULL;) {
    if (e->d_name[0] != '.') snprintf(path, size, "%s/%.40s", folder, e->d_name);
  }
  closedir(files);
  CHECK(path[0] != '\0');
}

static receipt receive(const stranger *s, message *m, int *file) {
  receipt result;
  EVENTUALLY((result = message_receive(s->socket, m, file)) != RECEIPT_NONE);
  return result;
}

void stranger_reach(stranger *s, const broker *b) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memset(s, 0, sizeof *s);
  find_socket(b, address.sun_path, sizeof address.sun_path);
  s->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  CHECK(s->socket >= 0);
  CHECK_EQ(connect(s->socket, (const struct sockaddr *)&address, sizeof address), 0);
}

void stranger_connect(stranger *s, const broker *b) {
  message hello;
  int file;
  stranger_reach(s, b);
  CHECK_EQ(receive(s, &hello, &file), RECEIPT_MESSAGE);
  CHECK_EQ(hello.kind, MESSAGE_HELLO);
  CHECK_EQ(memory_open(&s->its, file), 0);
  close(file);
  s->place = hello.place;
  s->file = memory_create(&s->own, STRANGER_RING);
  CHECK(s->file >= 0);
}

void stranger_end(stranger *s) {
  close(s->socket);
  close(s->file);
  memory_close(&s->its);
  memory_close(&s->own);
}

void stranger_say(const stranger *s, message_kind kind, uint64_t number, const char *text) {
  int error;
  EVENTUALLY((error = message_send(s->socket, kind, 0, number, text, -1)) != EAGAIN);
  CHECK_EQ(error, 0);
}

void stranger_greet(const stranger *s) {
  CHECK_EQ(message_send(s->socket, MESSAGE_HELLO, VICTIM_PLACE, 0, "stranger", s->file), 0);
}

void stranger_send(const stranger *s, const void *bytes, size_t size, int file, int copies) {
  struct iovec part = {(void *)(uintptr_t)bytes, size};
  struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(32 * sizeof(int))];
  } control = {.bytes = {0}};
  if (copies > 0) {
    packet.msg_control = &control;
    packet.msg_controllen = CMSG_SPACE((size_t)copies * sizeof file);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN((size_t)copies * sizeof file);
    for (int i = 0; i < copies; ++i)
      memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof file, &file, sizeof file);
  }
  CHECK_EQ(sendmsg(s->socket, &packet, MSG_NOSIGNAL), (ssize_t)size);
}

entry entry_for_victim(uint32_t name_size, uint32_t payload_size) {
  entry r = {.size = (uint32_t)(sizeof r + name_size + payload_size + 7) & ~7u,
             .name_size = (uint16_t)name_size,
             .payload_size = payload_size,
             .event = 1};
  places_add(&r.readers, VICTIM_PLACE);
  return r;
}

void stranger_write(stranger *s, const entry *r, const void *behind, size_t size) {
  board *b = s->own.board;
  unsigned char *at = memory_at(&s->own, b->head);
  memcpy(at, r, sizeof *r);
  memcpy(at + sizeof *r, behind, size);
  __atomic_store_n(&b->head, b->head + r->size, __ATOMIC_RELEASE);
  /* If the socket is full, the victim has unread messages and wakes up anyway. */
  const int error = message_send(s->socket, MESSAGE_WAKE, 0, 0, NULL, -1);
  CHECK(error == 0 || error == EAGAIN);
}

/* ---- Scenes ---------------------------------------------------------------------------------- */

static bool retains_k(void *context, const char *name, uint32_t event) {
  return name[0] == 'k';
}

void scene_start(scene *c) {
  memset(c, 0, sizeof *c);
  broker_start(&c->b, NULL);
  peer_connect_with(&c->victim, c->b.port, &OPTIONS(.ring_bytes = 1 << 16, .retains = retains_k));
  peer_observe(&c->victim, "n", counter(&c->calls));
}

void scene_end(scene *c) {
  peer next;
  const int calls = LOAD(c->calls);
  peer_connect_to(&next, &c->b);
  peer_meet(&next, 1);
  CHECK_OK(peer_publish(&next, "n", 1, "x", 1));
  EVENTUALLY(LOAD(c->calls) == calls + 1);
  peer_release(&next);
  peer_release(&c->victim);
  broker_delete(&c->b);
}

void scene_meet(const scene *c, stranger *s) {
  const uint64_t joined = peer_stats(&c->victim).joined;
  stranger_connect(s, &c->b);
  stranger_greet(s);
  EVENTUALLY(peer_stats(&c->victim).joined == joined + 1);
}
