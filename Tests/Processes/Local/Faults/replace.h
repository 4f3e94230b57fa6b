/* The compiler includes this file before each source file of libmulticast-local, so that tests can
 * refuse the library's requests to the system. */

#ifndef REPLACE_H
#define REPLACE_H

#include "requests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../Transports/Faults/replace.h"

#define HELLO_NS ((uint64_t)HELLO_MS * 1000000)
#define NAMES_MAX NAMES_THERE
#define DESCRIPTORS_MAX DESCRIPTORS_THERE

/* Makes the call, unless the test refuses it. */
#define UNLESS_REFUSED(kind, error, call) (is_refused(kind, false) ? refuse(error) : (call))

#define memfd_create(...) UNLESS_REFUSED(MEMORY_FILE, EMFILE, memfd_create(__VA_ARGS__))
#define ftruncate(...) UNLESS_REFUSED(FILE_SIZE, EFBIG, ftruncate(__VA_ARGS__))
#define mmap(...) (is_refused(MAPPING, true) ? (errno = ENOMEM, MAP_FAILED) : mmap(__VA_ARGS__))
#define fcntl(...) UNLESS_REFUSED(CONTROL, EINVAL, fcntl(__VA_ARGS__))
#define epoll_create1(...) UNLESS_REFUSED(EPOLL, EMFILE, epoll_create1(__VA_ARGS__))
#define epoll_ctl(...) UNLESS_REFUSED(EPOLL_CHANGE, ENOMEM, epoll_ctl(__VA_ARGS__))
#define epoll_wait(...) UNLESS_REFUSED(EPOLL_WAITING, EINTR, epoll_wait(__VA_ARGS__))
#define openat(...) UNLESS_REFUSED(OPENING, EMFILE, openat(__VA_ARGS__))
#define mkdirat(...) UNLESS_REFUSED(FOLDER, ENOSPC, mkdirat(__VA_ARGS__))
#define fdopendir(...) (is_refused(FOLDER, true) ? (errno = ENOMEM, NULL) : fdopendir(__VA_ARGS__))
#define fstat(...) UNLESS_REFUSED(STATUS, EIO, fstat(__VA_ARGS__))
#define flock(...) UNLESS_REFUSED(LOCKING, ENOLCK, flock(__VA_ARGS__))
#define socket(...) UNLESS_REFUSED(SOCKET, EMFILE, socket(__VA_ARGS__))
#define bind(...) UNLESS_REFUSED(BINDING, ENOMEM, bind(__VA_ARGS__))
#define listen(...) UNLESS_REFUSED(LISTENING, ENOMEM, listen(__VA_ARGS__))
#define connect(...) UNLESS_REFUSED(CONNECTING, EAGAIN, connect(__VA_ARGS__))
#define accept4(...) UNLESS_REFUSED(ACCEPTING, EMFILE, accept4(__VA_ARGS__))
#define getsockopt(...) UNLESS_REFUSED(CREDENTIALS, ENOBUFS, getsockopt(__VA_ARGS__))
#define sendmsg(...) UNLESS_REFUSED(SENDING, ENOBUFS, sendmsg(__VA_ARGS__))
#define memcpy(to, from, size) copy_disturbed(to, from, size)
#define recvmsg(...) UNLESS_REFUSED(RECEIVING_MESSAGE, ENOMEM, recvmsg(__VA_ARGS__))

#endif
