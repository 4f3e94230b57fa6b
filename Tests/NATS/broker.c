#include "broker.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- nats-server ----------------------------------------------------------------------------- */

void broker_start_again(broker *b) {
  fflush(NULL);
  b->process = fork();
  if (b->process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(b->folder) != 0 || freopen("log", "a", stderr) == NULL) _exit(1);
    execlp("nats-server", "nats-server", "-c", "nats.conf", (char *)NULL);
    execl("/usr/sbin/nats-server", "nats-server", "-c", "nats.conf", (char *)NULL);
    _exit(127);
  }
  CHECK(b->process > 0);
  EVENTUALLY(is_port_open(b->port));
}

void broker_prepare(broker *b, const char *configuration) {
  char path[64];
  FILE *stream;
  memset(b, 0, sizeof *b);
  strcpy(b->folder, "/tmp/multicast-nats-XXXXXX");
  CHECK(mkdtemp(b->folder) != NULL);
  b->port = free_port();
  snprintf(path, sizeof path, "%s/nats.conf", b->folder);
  stream = fopen(path, "w");
  CHECK(stream != NULL);
  CHECK(fprintf(stream, "listen: 127.0.0.1:%d\n%s\n", b->port,
                configuration == NULL ? "" : configuration) > 0);
  CHECK_EQ(fclose(stream), 0);
}

void broker_start(broker *b, const char *configuration) {
  broker_prepare(b, configuration);
  broker_start_again(b);
}

void broker_end(broker *b, int signal) {
  int status;
  if (b->process == 0) return;
  CHECK_EQ(kill(b->process, signal), 0);
  CHECK_EQ(waitpid(b->process, &status, 0), b->process);
  b->process = 0;
}

static int delete_entry(const char *path, const struct stat *status, int kind, struct FTW *at) {
  (void)status, (void)kind, (void)at;
  return remove(path);
}

void broker_delete(broker *b) {
  broker_end(b, SIGKILL);
  CHECK_EQ(nftw(b->folder, delete_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void broker_run(const broker *b, const char *command) {
  char whole[4096];
  snprintf(whole, sizeof whole, "cd %s && %s", b->folder, command);
  CHECK_EQ(system(whole), 0); // NOLINT(cert-env33-c): a shell is what is wanted
}

/* ---- Clients --------------------------------------------------------------------------------- */

transport_options peer_options(peer *p, int port) {
  transport_options options = peer_create(p);
  snprintf(p->address, sizeof p->address, "nats://127.0.0.1:%d", port);
  options.servers = p->address;
  return options;
}

transport_options peer_reliable_options(peer *p, int port) { return peer_options(p, port); }

void peer_connect_to(peer *p, const broker *b) {
  transport_options options = peer_options(p, b->port);
  peer_connect(p, &options);
}
