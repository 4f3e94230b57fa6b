#include "broker.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- mosquitto ------------------------------------------------------------------------------- */

const char *broker_file(const broker *b, const char *file, const char *text) {
  static char path[64];
  FILE *stream;
  int written, closed;
  snprintf(path, sizeof path, "%s/%s", b->folder, file);
  stream = fopen(path, "w");
  CHECK(stream != NULL);
  written = fputs(text, stream);
  closed = fclose(stream);
  CHECK(written >= 0 && closed == 0);
  return path;
}

void broker_start_again(broker *b) {
  char configuration[64], log[64];
  snprintf(configuration, sizeof configuration, "%s/mosquitto.conf", b->folder);
  snprintf(log, sizeof log, "%s/log", b->folder);
  fflush(NULL);
  b->process = fork();
  if (b->process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (freopen(log, "a", stderr) == NULL || freopen(log, "a", stdout) == NULL) _exit(1);
    execlp("mosquitto", "mosquitto", "-c", configuration, (char *)NULL);
    execl("/usr/sbin/mosquitto", "mosquitto", "-c", configuration, (char *)NULL);
    _exit(127);
  }
  CHECK(b->process > 0);
  EVENTUALLY(is_port_open(b->port));
}

void broker_start(broker *b, const char *configuration) {
  char text[4096];
  strcpy(b->folder, "/tmp/multicast-mqtt-XXXXXX");
  CHECK(mkdtemp(b->folder) != NULL);
  b->port = free_port();
  snprintf(text, sizeof text,
           "listener %d 127.0.0.1\n"
           "user root\n" /* as root; else it is what the test is */
           "persistence true\n"
           "persistence_location %s/\n"
           "max_queued_messages 0\n"
           "%s\n",
           b->port, b->folder, configuration == NULL ? "allow_anonymous true" : configuration);
  broker_file(b, "mosquitto.conf", text);
  broker_start_again(b);
}

void broker_end(broker *b, int signal) {
  int status, waits = 0;
  pid_t ended;
  if (b->process == 0) return;
  CHECK_EQ(kill(b->process, signal), 0);
  /* mosquitto listens a moment before it heeds signals. */
  while ((ended = waitpid(b->process, &status, WNOHANG)) == 0) {
    pause_ms(10);
    if (++waits % 100 == 0) CHECK_EQ(kill(b->process, signal), 0);
  }
  CHECK_EQ(ended, b->process);
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
  char port[16];
  snprintf(port, sizeof port, "%d", b->port);
  setenv("PORT", port, 1);
  setenv("FOLDER", b->folder, 1);
  CHECK_EQ(system(command), 0); // NOLINT(cert-env33-c): a shell is what is wanted
}

/* ---- Clients --------------------------------------------------------------------------------- */

transport_options peer_options(peer *p, int port) {
  transport_options options = peer_create(p);
  options.host = "127.0.0.1";
  options.port = (uint32_t)port;
  return options;
}

transport_options peer_reliable_options(peer *p, int port) {
  transport_options options = peer_options(p, port);
  options.qos = 1;
  return options;
}

void peer_connect_to(peer *p, const broker *b, uint32_t qos) {
  transport_options options = peer_options(p, b->port);
  options.qos = qos;
  peer_connect(p, &options);
}
