#include "broker.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Start and end --------------------------------------------------------------------------- */

void broker_start_again(broker *b) {
  fflush(NULL);
  b->process = fork();
  if (b->process == 0) {
    char path[64];
    snprintf(path, sizeof path, "/usr/sbin/%s", broker_program);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(b->folder) != 0 || freopen("log", "a", stderr) == NULL ||
        freopen("log", "a", stdout) == NULL)
      _exit(1);
    execlp(broker_program, broker_program, "-c", "conf", (char *)NULL);
    execl(path, broker_program, "-c", "conf", (char *)NULL);
    _exit(127);
  }
  CHECK(b->process > 0);
  EVENTUALLY(is_port_open(b->port));
}

void broker_prepare(broker *b, const char *lines) {
  FILE *file;
  memset(b, 0, sizeof *b);
  strcpy(b->folder, "/tmp/multicast-broker-XXXXXX");
  CHECK(mkdtemp(b->folder) != NULL);
  b->port = free_port();
  file = fopen(broker_path(b, "conf"), "w");
  CHECK(file != NULL);
  bool is_written = broker_configure(b, lines, file);
  CHECK(fclose(file) == 0 && is_written);
}

void broker_start(broker *b, const char *lines) {
  broker_prepare(b, lines);
  broker_start_again(b);
}

void broker_end(broker *b, int signal) {
  int status, waits = 0;
  pid_t ended;
  if (b->process == 0) return;
  CHECK_EQ(kill(b->process, signal), 0);
  /* mosquitto begins to listen before it handles signals, so the first signal may be lost. */
  while ((ended = waitpid(b->process, &status, WNOHANG)) == 0) {
    pause_ms(10);
    if (++waits % 100 == 0) CHECK_EQ(kill(b->process, signal), 0);
  }
  CHECK_EQ(ended, b->process);
  b->process = 0;
}

static int delete_entry(const char *path, const struct stat *status, int kind, struct FTW *at) {
  return remove(path);
}

void broker_delete(broker *b) {
  broker_end(b, SIGKILL);
  CHECK_EQ(nftw(b->folder, delete_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- The folder ------------------------------------------------------------------------------ */

char *broker_path(const broker *b, const char *file) {
  static char paths[4][64];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", b->folder, file);
  return path;
}

void broker_run(const broker *b, const char *command) {
  char whole[4096];
  snprintf(whole, sizeof whole, "export PORT=%d FOLDER=%s; cd $FOLDER && %s", b->port, b->folder,
           command);
  CHECK_EQ(system(whole), 0); // NOLINT(cert-env33-c): the shell is intended
}

void broker_make_certificates(const broker *b) {
  broker_run(
      b,
      "exec >/dev/null 2>&1; "
      "for ca in ours theirs; do openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=$ca "
      "-keyout $ca.key -out $ca.crt || exit 1; done; "
      "for who in localhost client; do "
      "echo subjectAltName=DNS:$who,IP:127.0.0.1 >names && "
      "openssl req -newkey rsa:2048 -nodes -subj /CN=$who -keyout $who.key -out $who.csr && "
      "openssl x509 -req -in $who.csr -CA ours.crt -CAkey ours.key -CAcreateserial -days 2 "
      "-extfile names -out $who.crt || exit 1; done; "
      "openssl rsa -aes256 -passout pass:secret -in client.key -out locked.key");
}

/* ---- Clients --------------------------------------------------------------------------------- */

void peer_connect_to(peer *p, const broker *b) {
  transport_options options = peer_options(p, b->port);
  peer_connect(p, &options);
}
