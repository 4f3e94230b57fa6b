/* While a process joins a group, it holds an flock on a file in the group's folder, so processes
 * join one at a time. The system releases the flock if the process ends. The process first creates
 * a listening socket in the folder and then connects to all other sockets there, which belong to
 * peers that joined earlier. Each pair of peers is thus connected exactly once. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "group.h"

#include "../Common/process.h"
#include "descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { TRIES = 500, BACKLOG = 1024 };
static const char lock_file[] = ".lock";

bool group_is_name(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const size_t size = strspn(name, letters);
  return size > 0 && size <= GROUP_NAME_MAX && name[size] == '\0' && name[0] != '.';
}

static bool fail(trouble *why, const char *reason) {
  why->error = errno;
  why->reason = reason;
  return false;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* The umask may remove all permissions of a new file, even its owner's. This function restores the
 * owner's permissions. Returns false if other users can access the file. Sockets may have any
 * permissions, because other users cannot access the folder. */
static bool allow_user(int parent, const char *name, mode_t mode) {
  struct stat status;
  return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(status.st_mode) &&
         status.st_uid == geteuid() && (S_ISSOCK(status.st_mode) || (status.st_mode & 077) == 0) &&
         fchmodat(parent, name, mode, 0) == 0;
}

/* Opens a file or a folder of this user, even if the umask has removed its permissions. */
static int open_own(int parent, const char *name, int flags, mode_t mode) {
  int file = openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0 && errno == EACCES && allow_user(parent, name, mode))
    file = openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
  return file;
}

/* Creates a folder if it does not exist, and opens it. Returns a negative number if this fails or
 * if other users can access the folder. */
static int open_folder(int parent, const char *name) {
  struct stat status;
  int folder;
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return -1;
  folder = open_own(parent, name, O_RDONLY | O_DIRECTORY, 0700);
  if (folder < 0) return -1;
  if (fstat(folder, &status) == 0) {
    /* The umask may have removed only some permissions, so that the folder can be opened but not
     * entered. */
    if (status.st_uid == geteuid() && (status.st_mode & 077) == 0 &&
        ((status.st_mode & 0700) == 0700 || fchmod(folder, 0700) == 0))
      return folder;
    errno = EPERM;
  }
  close(folder);
  return -1;
}

/* Opens the folder in which `multicast` will be created. Returns a negative number if the folder
 * does not exist or belongs to another user. */
static int open_runtime(const char *path) {
  const int folder = path == NULL || path[0] != '/'
                         ? -1
                         : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat status;
  if (folder < 0 || (fstat(folder, &status) == 0 && status.st_uid == geteuid())) return folder;
  close(folder);
  return -1;
}

/* Opens the folder that contains the folders of all groups. */
static int open_directory(const char *directory) {
  char path[64];
  int folder, parent;
  if (directory != NULL) return open_folder(AT_FDCWD, directory);
  parent = open_runtime(getenv("XDG_RUNTIME_DIR"));
  if (parent < 0) {
    snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    parent = open_runtime(path);
  }
  if (parent >= 0) {
    folder = open_folder(parent, "multicast");
    close(parent);
    return folder;
  }
  snprintf(path, sizeof path, "/tmp/multicast-%u", (unsigned)geteuid());
  return open_folder(AT_FDCWD, path);
}

static int open_group(const char *directory, const char *name) {
  const int parent = open_directory(directory);
  const int folder = parent < 0 ? -1 : open_folder(parent, name);
  if (parent >= 0) close(parent);
  return folder;
}

/* Locks the group, and waits up to `most` milliseconds for the lock. If this fails, returns a
 * negative number and sets errno. ENOENT means that the folder has been removed. */
static int lock(int folder, int most) {
  struct stat status;
  int file, tries;
  process_lock();
  file = descriptor_record(open_own(folder, lock_file, O_RDWR | O_CREAT, 0600));
  process_unlock();
  if (file < 0) return -1;
  for (tries = 0; flock(file, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == most || (errno != EWOULDBLOCK && errno != EINTR)) {
      descriptor_close(file);
      return -1;
    }
    poll(NULL, 0, 1);
  }
  /* The last member may have removed the file while this process was waiting. */
  if (fstat(file, &status) == 0 && status.st_nlink > 0) return file;
  descriptor_close(file);
  errno = ENOENT;
  return -1;
}

/* A child created without the fork handlers may have inherited the descriptor, so close() alone may
 * not release the lock. */
static void unlock(int file) {
  flock(file, LOCK_UN);
  descriptor_close(file);
}

/* ---- Sockets --------------------------------------------------------------------------------- */

/* Builds the path from the folder's descriptor, so that the path is short and always leads to that
 * folder. */
static struct sockaddr_un address_of(int folder, const char *file) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, file);
  return address;
}

static int open_socket(void) {
  int s;
  process_lock();
  s = descriptor_record(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  process_unlock();
  return s;
}

/* Connects to a peer. If this fails, returns a negative number and sets errno. ECONNREFUSED means
 * that the peer no longer exists. */
static int connect_to(int folder, const char *file) {
  const struct sockaddr_un address = address_of(folder, file);
  int s = open_socket(), tries = 0, error;
  if (s < 0) return -1;
  while (connect(s, (const struct sockaddr *)&address, sizeof address) != 0) {
    if (errno == EACCES && tries++ == 0 && allow_user(folder, file, 0700)) continue;
    /* EAGAIN means that the backlog is full, because the peer's thread is running an observer. */
    if ((errno != EAGAIN && errno != EINTR) || tries++ == TRIES) {
      error = errno;
      descriptor_close(s);
      errno = error;
      return -1;
    }
    poll(NULL, 0, 1);
  }
  return s;
}

static void stop_listening(group *g) {
  if (g->listener < 0) return;
  unlinkat(g->folder, g->file, 0);
  descriptor_close(g->listener);
  g->listener = -1;
}

static bool begin_listening(group *g) {
  struct sockaddr_un address;
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return false;
  snprintf(g->file, sizeof g->file, "%d-%016llx", (int)getpid(), (unsigned long long)random);
  address = address_of(g->folder, g->file);
  g->listener = open_socket();
  return g->listener >= 0 &&
         bind(g->listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
         listen(g->listener, BACKLOG) == 0;
}

/* Returns whether a file is the socket of a peer, and stores the peer's process id in `*pid`. */
static bool is_peer(const char *file, int *pid) {
  unsigned long long random;
  int end = 0;
  return strlen(file) < FILE_NAME_SIZE &&
         sscanf(file, "%d-%16llx%n", pid, &random, &end) == 2 && file[end] == '\0';
}

/* Calls `call` for the socket of each other member until a call returns false. Returns whether all
 * calls have returned true. */
static bool for_others(const group *g, bool (*call)(const group *g, const char *file, int pid,
                                                    void *context), void *context) {
  const int folder = openat(g->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *files = folder < 0 ? NULL : fdopendir(folder);
  const struct dirent *entry;
  bool goes_on = files != NULL;
  int pid;
  if (files == NULL && folder >= 0) close(folder);
  while (goes_on && (entry = readdir(files)) != NULL) {
    if (is_peer(entry->d_name, &pid) && strcmp(entry->d_name, g->file) != 0)
      goes_on = call(g, entry->d_name, pid, context);
  }
  if (files != NULL) closedir(files);
  return goes_on;
}

int group_accept(const group *g) {
  int s;
  process_lock();
  s = descriptor_record(accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
  process_unlock();
  return s;
}

int group_reach(const group *g, const char *file) {
  const int s = connect_to(g->folder, file);
  if (s < 0 && errno == ECONNREFUSED) {
    unlinkat(g->folder, file, 0);
    errno = ECONNREFUSED;
  }
  return s;
}

/* ---- Entering -------------------------------------------------------------------------------- */

typedef struct meeting {
  bool (*met)(void *context, int socket, const char *file);
  void *context;
} meeting;

static bool meet(const group *g, const char *file, int pid, void *context) {
  const meeting *m = context;
  const int s = group_reach(g, file);
  (void)pid;
  if (s >= 0) return m->met(m->context, s, file);
  /* These errors mean that the peer no longer exists or that the file is another kind of socket. */
  return errno == ECONNREFUSED || errno == ENOENT || errno == EPROTOTYPE;
}

static void close_all(group *g) {
  stop_listening(g);
  if (g->folder >= 0) close(g->folder);
  g->folder = -1;
}

bool group_enter(group *g, const char *directory, const char *name,
                 bool (*met)(void *context, int socket, const char *file), void *context,
                 trouble *why) {
  meeting m = {met, context};
  int file, tries = 0;
  bool is_in;
  do {
    g->folder = open_group(directory, name);
    if (g->folder < 0) return fail(why, "the folder of the group cannot be used");
    file = lock(g->folder, TRIES);
    if (file >= 0) break;
    fail(why, "the group cannot be locked: a process may be stopped that has begun to join");
    close_all(g);
  } while (why->error == ENOENT && tries++ < TRIES);
  if (file < 0) return false;
  is_in = begin_listening(g) || fail(why, "a socket cannot be made in the folder of the group");
  if (is_in && !for_others(g, meet, &m)) is_in = fail(why, "a peer cannot be reached");
  if (!is_in) close_all(g);
  unlock(file);
  return is_in;
}

/* ---- Leaving --------------------------------------------------------------------------------- */

/* Removes a process's socket file if nobody is listening on it any more. When a process ends, the
 * system may close its connections before its listening socket. A new connection may therefore
 * still succeed, but it soon ends, and later connections are refused. If a connection does not end
 * soon, the process still exists, and the socket belongs to another of its transports. */
static bool sweep(const group *g, const char *file, int pid, void *context) {
  bool is_over = pid != *(const pid_t *)context;
  int tries;
  for (tries = 0; !is_over && tries < 20; ++tries) {
    struct pollfd socket = {group_reach(g, file), POLLIN, 0};
    if (socket.fd < 0) break;
    is_over = poll(&socket, 1, 5) != 1 || (socket.revents & POLLHUP) == 0;
    descriptor_close(socket.fd);
  }
  return true;
}

/* Acquires the group's lock, so that no process can join during the sweep. A joining process
 * refuses connections until it calls listen(), so a sweep would remove its socket. If another
 * process holds the lock, the files remain until a process joins or the last member leaves. */
void group_sweep(const group *g, pid_t pid) {
  const int file = lock(g->folder, 0);
  if (file < 0) return;
  for_others(g, sweep, &pid);
  unlock(file);
}

static bool is_left_behind(const group *g, const char *file, int pid, void *context) {
  const int s = group_reach(g, file);
  (void)pid, (void)context;
  if (s >= 0) descriptor_close(s);
  return s < 0;
}

void group_leave(group *g, const char *directory, const char *name) {
  int file, parent;
  if (g->folder < 0) return;
  stop_listening(g);
  file = lock(g->folder, TRIES);
  /* Remove the folder if no other member is listening. */
  if (file >= 0 && for_others(g, is_left_behind, NULL)) {
    unlinkat(g->folder, lock_file, 0);
    parent = open_directory(directory);
    if (parent >= 0) {
      unlinkat(parent, name, AT_REMOVEDIR);
      close(parent);
    }
  }
  if (file >= 0) unlock(file);
  close_all(g);
}
