/* The tests of all transports use brokers. libmulticast-local needs no broker, so its broker is a
 * folder for groups and a process that does nothing. While the process exists, peers can meet in
 * the folder. */

#include "groups.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The folder ------------------------------------------------------------------------------ */

/* Writes the path of the folder that belongs to a port. The folder need not exist. */
static void write_folder(char *folder, size_t size, int port) {
  snprintf(folder, size, "/tmp/multicast-local-%d", port);
}

int free_port(void) {
  static int next;
  return (int)getpid() * 100 + ADD(next, 1) % 100;
}

void broker_start_again(broker *b) {
  b->process = fork();
  CHECK(b->process >= 0);
  if (b->process > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

void broker_prepare(broker *b, const char *lines) {
  int made;
  memset(b, 0, sizeof *b);
  do { /* a failed test may have left a folder behind */
    b->port = free_port();
    write_folder(b->folder, sizeof b->folder, b->port);
    made = mkdir(b->folder, 0700);
  } while (made != 0 && errno == EEXIST);
  CHECK_EQ(made, 0);
}

void broker_start(broker *b, const char *lines) {
  broker_prepare(b, lines);
  broker_start_again(b);
}

void broker_end(broker *b, int signal) {
  int status;
  if (b->process == 0) return;
  CHECK_EQ(kill(b->process, signal), 0);
  CHECK_EQ(waitpid(b->process, &status, 0), b->process);
  b->process = 0;
}

/* Expects that the folder is empty, because the last peer of a group removes the group's folder. */
void broker_delete(broker *b) {
  int tries = 0;
  broker_end(b, SIGKILL);
  while (rmdir(b->folder) != 0 && errno == ENOTEMPTY && ++tries < 5000) pause_ms(1);
  CHECK_EQ(access(b->folder, F_OK), -1);
}

/* ---- Peers ----------------------------------------------------------------------------------- */

void peer_set_address(peer *p, int port, transport_options *options) {
  write_folder(p->address, sizeof p->address, port);
  options->group = "tests";
  options->directory = p->address;
  /* If the broker does not exist, use a folder that the peer cannot create, because a peer that
   * could create the folder would connect. */
  if (access(p->address, F_OK) != 0) options->directory = "/missing/folder";
}

transport_options peer_reliable_options(peer *p, int port) { return peer_options(p, port); }

void peer_connect_to(peer *p, const broker *b) {
  transport_options options = peer_options(p, b->port);
  peer_connect(p, &options);
}

bool note_peer(peer *p, transport_state state, int32_t pid, const char *name) {
  switch (state) {
    case MULTICAST_LOCAL_JOINED:
      snprintf(p->joined_name, sizeof p->joined_name, "%s", name);
      ADD(p->joined, 1);
      return true;
    case MULTICAST_LOCAL_GONE:
      snprintf(p->gone_name, sizeof p->gone_name, "%s", name);
      STORE(p->gone_at, time_now());
      ADD(p->gone, 1);
      return true;
    case MULTICAST_LOCAL_EXPELLED: ADD(p->expelled, 1); return true;
    default: return false;
  }
}

/* ---- Other processes ------------------------------------------------------------------------- */

FUNCTION(count_arrived, int *arrived) { ADD(*arrived, 1); }

static void run_remote(const remote *r, int port, const char *name, const char *const *names) {
  char folder[32];
  peer p;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  write_folder(folder, sizeof folder, port);
  EVENTUALLY(access(folder, F_OK) == 0);
  peer_connect_with(&p, port, &OPTIONS(.name = name));
  for (; *names != NULL; ++names)
    CHECK_OK(multicast_broadcaster_register(p.broadcaster, *names,
                                            DELEGATE(count_arrived, r->arrived), NULL, NULL));
  CHECK_OK(multicast_broadcaster_attach(p.broadcaster, &p.transport));
  for (;;) pause();
}

remote remote_start(int port, const char *name, const char *const *names) {
  remote r;
  r.arrived = mmap(NULL, sizeof *r.arrived, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0);
  CHECK(r.arrived != MAP_FAILED);
  r.pid = fork();
  CHECK(r.pid >= 0);
  if (r.pid == 0) {
    run_remote(&r, port, name, names);
    _exit(1);
  }
  return r;
}

void remote_end(remote *r, int signal) {
  CHECK_EQ(kill(r->pid, signal), 0);
  CHECK_EQ(waitpid(r->pid, NULL, 0), r->pid);
}

void peer_meet(peer *p, int others) {
  EVENTUALLY(peer_stats(p).peers == (uint32_t)others);
  peer_flush(p);
}
