/* A group: a folder with a socket for each peer. */

#ifndef MULTICAST_LOCAL_GROUP_H
#define MULTICAST_LOCAL_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { FILE_NAME_SIZE = 32, GROUP_NAME_MAX = 100 };

typedef struct group {
  int folder, listener; /* negative: none */
  char file[FILE_NAME_SIZE]; /* of the listener, in the folder */
} group;

/* The reason that group_enter() gives when it fails. */
typedef struct trouble {
  int error; /* an errno */
  const char *reason;
} trouble;

bool group_is_name(const char *name);

/* Makes the folder, if it is not there, and listens in it; connects to each peer that does, and has
 * `met` called with the socket, which that takes over, and the name of the other one. False: it
 * cannot now, or met() said so. */
bool group_enter(group *g, const char *directory, const char *name,
                 bool (*met)(void *context, int socket, const char *file), void *context,
                 trouble *why);
/* Connects again to the socket with this name. Negative: an errno says why; the file of one that is
 * not there any more is removed. */
int group_reach(const group *g, const char *file);
/* Removes the sockets that a process has left behind. */
void group_sweep(const group *g, pid_t pid);
/* Removes what is its own; the last one removes the folder. */
void group_leave(group *g, const char *directory, const char *name);

#endif
