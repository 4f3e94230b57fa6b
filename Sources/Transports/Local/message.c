#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "message.h"

#include "board.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Control messages are aligned to 8 bytes, so a message with room for one descriptor has room for
 * two. */
enum { FILES_MAX = 2 };

typedef union control {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(FILES_MAX * sizeof(int))];
} control;

int message_send(int socket, message_kind kind, uint32_t place, uint64_t number, const char *text,
                 int file) {
  message m = {.kind = kind, .place = place, .number = number};
  struct iovec bytes = {&m, offsetof(message, text)};
  struct msghdr packet = {.msg_iov = &bytes, .msg_iovlen = 1};
  control c;
  if (text != NULL) {
    const size_t size = strlen(text) + 1;
    memcpy(m.text, text, size);
    bytes.iov_len += size;
  }
  if (file >= 0) {
    struct cmsghdr *header;
    memset(&c, 0, sizeof c);
    packet.msg_control = &c;
    packet.msg_controllen = CMSG_SPACE(sizeof file);
    header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
  }
  return sendmsg(socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Returns the number of attached descriptors. Stores the first descriptor in `*file`, and closes
 * the others. */
static int take_files(struct msghdr *packet, int *file) {
  struct cmsghdr *header;
  int count = 0;
  for (header = CMSG_FIRSTHDR(packet); header != NULL; header = CMSG_NXTHDR(packet, header)) {
    const unsigned char *at = CMSG_DATA(header);
    size_t left;
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (left = header->cmsg_len - CMSG_LEN(0); left >= sizeof(int); left -= sizeof(int)) {
      int one;
      memcpy(&one, at, sizeof one);
      at += sizeof one;
      if (count++ == 0) *file = one;
      else close(one);
    }
  }
  return count;
}

static bool is_valid(const message *m, size_t size, int files) {
  const bool has_name = m->kind == MESSAGE_WANT || m->kind == MESSAGE_UNWANT;
  const bool is_hello = m->kind == MESSAGE_HELLO;
  const size_t before = offsetof(message, text), text = size - before;
  if (size < before || m->kind < MESSAGE_WAKE || m->kind > MESSAGE_DONE) return false;
  if (files != (is_hello ? 1 : 0) || m->place >= PEERS_MAX) return false;
  if (!has_name && !is_hello) return text == 0;
  if (has_name && m->place > 2) return false;
  if (has_name && m->place == 2 && text > 0 && m->text[0] != '*') return false;
  /* The last byte must be the only NUL. */
  if (text == 0 || memchr(m->text, '\0', text) != m->text + text - 1) return false;
  return is_hello ? text <= NAME_SHOWN + 1 : text > 1;
}

receipt message_receive(int socket, message *m, int *file) {
  struct iovec bytes = {m, sizeof *m};
  control c;
  struct msghdr packet = {
      .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
  ssize_t size = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  int files;
  *file = -1;
  if (size < 0)
    return errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS ? RECEIPT_NONE
                                                                                    : RECEIPT_END;
  if (size == 0) return RECEIPT_END;
  files = take_files(&packet, file);
  if ((packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && is_valid(m, (size_t)size, files))
    return RECEIPT_MESSAGE;
  if (*file >= 0) close(*file);
  *file = -1;
  return files == 0 && (packet.msg_flags & MSG_CTRUNC) != 0 ? RECEIPT_END : RECEIPT_INVALID;
}
