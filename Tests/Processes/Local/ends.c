/* Tests peers that join and leave in various ways. */

#include "groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const name_n[] = {"n", NULL};

TEST_OF_BROKER(peers_are_told_by_name, NULL) {
  SCOPED peer here;
  char path[64];
  remote r = remote_start(b->port, "the \x01 other one", name_n);
  peer_connect_with(&here, b->port, &OPTIONS(.name = "this one"));
  peer_meet(&here, 1);
  EVENTUALLY(LOAD(here.joined) == 1);
  CHECK_TEXT(here.joined_name, "the ? other one");
  CHECK_EQ(kill(r.pid, SIGKILL), 0);
  EVENTUALLY(LOAD(here.gone) == 1);
  CHECK_TEXT(here.gone_name, "the ? other one");
  CHECK_EQ(peer_stats(&here).peers, 0);
  CHECK_EQ(peer_stats(&here).joined, 1);
  CHECK_EQ(peer_stats(&here).gone, 1);
  CHECK_EQ(peer_stats(&here).expelled, 0);
  CHECK_EQ(waitpid(r.pid, NULL, 0), r.pid);
  /* The socket file of the killed peer has also been removed, so only this peer's file remains. */
  snprintf(path, sizeof path, "%s/tests", b->folder);
  DIR *folder = opendir(path);
  int sockets = 0;
  CHECK(folder != NULL);
  for (const struct dirent *e; (e = readdir(folder)) != NULL;) sockets += e->d_name[0] != '.';
  closedir(folder);
  CHECK_EQ(sockets, 1);
}

TEST_OF_BROKER(long_name_is_cut, NULL) {
  static const char name[] = "a name of more than the 63 bytes that others are told: this is cut";
  SCOPED peer here, there;
  peer_connect_to(&here, b);
  peer_connect_with(&there, b->port, &OPTIONS(.name = name));
  EVENTUALLY(LOAD(here.joined) == 1);
  CHECK_EQ(strlen(here.joined_name), 63);
  CHECK_EQ(strncmp(here.joined_name, name, 63), 0);
}

/* A long name is truncated to at most 63 bytes, but never within a UTF-8 character. */
TEST_OF_BROKER(long_name_is_cut_between_characters, NULL) {
  static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (size_t i = 0; i < 3; ++i) {
    const size_t size = strlen(characters[i]);
    for (size_t before = 0; before < size; ++before) {
      SCOPED peer here, there;
      char name[128] = "";
      for (size_t k = 0; k < before; ++k) strcat(name, "a");
      while (strlen(name) < 100) strcat(name, characters[i]);
      peer_connect_to(&here, b);
      peer_connect_with(&there, b->port, &OPTIONS(.name = name));
      EVENTUALLY(LOAD(here.joined) == 1);
      const size_t used = before + (63 - before) / size * size;
      CHECK_EQ(strlen(here.joined_name), used);
      CHECK_EQ(strncmp(here.joined_name, name, used), 0);
      peer_release(&there);
      peer_release(&here);
    }
  }
}

/* Only the fastest of several rounds counts, because the machine may be busy. The peers process a
 * new name before each kill, and then sleep. If the peers noticed a kill only at their next
 * timeout, no round would be fast. */
TEST_OF_BROKER(kill_is_told_within_10_ms, NULL) {
  enum { COUNT = 10 };
  SCOPED peer here;
  remote all[COUNT];
  uint64_t best = UINT64_MAX;
  int killed = 0;
  for (int i = 0; i < COUNT; ++i) all[i] = remote_start(b->port, "r", name_n);
  peer_connect_to(&here, b);
  peer_meet(&here, COUNT);
  while (killed < COUNT && best >= 10000000) {
    char name[20];
    snprintf(name, sizeof name, "name %d", killed);
    peer_observe(&here, name, counter(&calls));
    peer_flush(&here);
    const uint64_t before = time_now();
    remote_end(&all[killed++], SIGKILL);
    EVENTUALLY(LOAD(here.gone) == killed);
    if (LOAD(here.gone_at) - before < best) best = LOAD(here.gone_at) - before;
  }
  CHECK(best < 10000000);
  while (killed < COUNT) remote_end(&all[killed++], SIGKILL);
  EVENTUALLY(LOAD(here.gone) == COUNT);
}

TEST_OF_BROKER(peer_that_detaches_is_told, NULL) {
  SCOPED peer here, there;
  peer_connect_to(&here, b);
  peer_connect_with(&there, b->port, &OPTIONS(.name = "there"));
  peer_meet(&here, 1);
  peer_meet(&there, 1);
  peer_release(&there);
  EVENTUALLY(LOAD(here.gone) == 1);
  CHECK_TEXT(here.gone_name, "there");
}

/* ---- Killed publishers ----------------------------------------------------------------------- */

/* A process publishes numbers until it is killed. The process stores each number in `begun` before
 * it publishes the number, and in `accepted` when the publication has been accepted. The struct is
 * in shared memory. */
typedef struct numbers {
  int may_begin, begun, accepted;
} numbers;

static void publish_until_killed(int port, numbers *n, multicast_overflow overflow) {
  peer p;
  peer_connect_with(&p, port, &OPTIONS(.ring_bytes = 1 << 16, .overflow = overflow,
                                       .block_ns = 20000000000u));
  EVENTUALLY(LOAD(n->may_begin) == 1);
  for (int i = 0;; ++i) {
    STORE(n->begun, i + 1);
    if (peer_publish(&p, "n", 1, &i, sizeof i) != MULTICAST_OK) _exit(1);
    STORE(n->accepted, i + 1);
  }
}

/* Two peers observe the numbers. Each peer must receive all accepted numbers, and may also receive
 * the number that was being published during the kill. */
TEST(what_a_killed_process_has_published_arrives) {
#ifdef IS_WITHOUT_THREADS_IN_CHILDREN
  static const int rounds = 1; /* later children would be forked by a process with threads */
#else
  static const int rounds = 30;
#endif
  numbers *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(n != MAP_FAILED);
  for (int round = 0; round < rounds; ++round) {
    broker b;
    peer here, there;
    sequence to_here = {0, 0, 0}, to_there = {0, 0, 0};
    n->may_begin = n->begun = n->accepted = 0;
    broker_prepare(&b, NULL);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) publish_until_killed(b.port, n, MULTICAST_OVERFLOW_BLOCK);
    peer_connect_to(&here, &b);
    peer_connect_to(&there, &b);
    peer_observe(&here, "n", counting(&to_here));
    peer_observe(&there, "n", counting(&to_there));
    peer_meet(&here, 2);
    peer_meet(&there, 2);
    STORE(n->may_begin, 1);
    EVENTUALLY(LOAD(n->accepted) > round * 100);
    CHECK_EQ(kill(child, SIGKILL), 0);
    EVENTUALLY(LOAD(here.gone) == 1 && LOAD(there.gone) == 1);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    int last = LOAD(to_here.next);
    CHECK(last >= n->accepted && last <= n->begun);
    CHECK_EQ(LOAD(to_there.next), last);
    CHECK_EQ(LOAD(to_here.wrong) + LOAD(to_here.repeated), 0);
    CHECK_EQ(LOAD(to_there.wrong) + LOAD(to_there.repeated), 0);
    /* Both peers continue. */
    CHECK_OK(peer_publish(&here, "n", 1, &last, sizeof last));
    EVENTUALLY(LOAD(to_there.next) == last + 1);
    peer_release(&here);
    peer_release(&there);
    broker_delete(&b);
  }
}

/* ---- Groups ---------------------------------------------------------------------------------- */

TEST_OF_BROKER(many_meet_at_once, NULL) {
  enum { COUNT = 20 };
  peer all[COUNT];
  int calls = 0;
  for (int i = 0; i < COUNT; ++i) peer_begin(&all[i], b->port, NULL);
  for (int i = 0; i < COUNT; ++i) {
    EVENTUALLY(peer_stats(&all[i]).peers == COUNT - 1);
    peer_observe(&all[i], "n", counter(&calls));
  }
  for (int i = 0; i < COUNT; ++i) CHECK_OK(peer_publish(&all[i], "n", 1, "x", 1));
  EVENTUALLY(LOAD(calls) == COUNT * (COUNT - 1));
  pause_ms(A_WHILE_MS);
  CHECK_EQ(LOAD(calls), COUNT * (COUNT - 1));
  for (int i = 0; i < COUNT; ++i) peer_release(&all[i]);
}

TEST_OF_BROKER(groups_do_not_meet, NULL) {
  SCOPED peer here, there;
  int calls = 0;
  transport_options options = peer_options(&there, b->port);
  options.group = "another";
  peer_connect(&there, &options);
  peer_observe(&there, "n", counter(&calls));
  peer_connect_to(&here, b);
  CHECK_OK(peer_publish(&here, "n", 1, "x", 1));
  peer_flush(&here);
  CHECK_EQ(peer_stats(&here).peers, 0);
  CHECK_EQ(peer_stats(&here).unwanted, 1);
  CHECK_EQ(calls, 0);
}

/* If all peers are killed, the files that they leave behind do not affect later peers. */
TEST_OF_BROKER(group_of_killed_peers_can_be_joined, NULL) {
  SCOPED peer here;
  remote all[5];
  for (int i = 0; i < 5; ++i) all[i] = remote_start(b->port, "r", name_n);
  peer_connect_to(&here, b);
  peer_meet(&here, 5);
  peer_release(&here);
  for (int i = 0; i < 5; ++i) CHECK_EQ(kill(all[i].pid, SIGSTOP), 0);
  for (int i = 0; i < 5; ++i) remote_end(&all[i], SIGKILL);
  peer_connect_to(&here, b);
  CHECK_EQ(peer_stats(&here).peers, 0);
  peer_flush(&here);
}

TEST_OF_BROKER(folder_that_others_can_use_is_refused, NULL) {
  static const mode_t modes[] = {0701, 0710, 0770, 0777, 0704, 0740};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
    SCOPED peer p;
    CHECK_EQ(chmod(b->folder, modes[i]), 0);
    transport_options options = peer_options(&p, b->port);
    p.expected = "folder";
    CHECK_OK(transport_connect(&options, &p.transport));
    EVENTUALLY(LOAD(p.refused_as_expected) >= 1);
    CHECK_EQ(LOAD(p.connected), 0);
    peer_release(&p);
  }
  CHECK_EQ(chmod(b->folder, 0700), 0);
  /* The folder of the group must not be a symbolic link, either. */
  SCOPED peer p;
  char path[64];
  snprintf(path, sizeof path, "%s/tests", b->folder);
  CHECK_EQ(symlink("/tmp", path), 0);
  peer_begin(&p, b->port, NULL);
  EVENTUALLY(LOAD(p.refused) >= 1);
  CHECK_EQ(unlink(path), 0);
  /* The peer tries again. */
  EVENTUALLY(LOAD(p.connected) == 1);
}

/* With one of these ends, the system itself follows the link. */
TEST_OF_BROKER(directory_that_is_a_link_is_refused_whatever_its_end, NULL) {
  static const char *const ends[] = {"", "/", "/.", "//.//"};
  char link[64], path[80];
  snprintf(link, sizeof link, "%s-link", b->folder);
  CHECK_EQ(symlink(b->folder, link), 0);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
    peer p;
    transport_options options = peer_options(&p, b->port);
    snprintf(path, sizeof path, "%s%s", link, ends[i]);
    options.directory = path;
    CHECK_OK(transport_connect(&options, &p.transport));
    EVENTUALLY(LOAD(p.refused) >= 1);
    CHECK_EQ(LOAD(p.connected), 0);
    peer_release(&p);
  }
  CHECK_EQ(unlink(link), 0);
}

TEST_OF_BROKER(folder_of_another_user_is_refused, NULL) {
  if (geteuid() != 0) return; /* only root can change the owner */
  SCOPED peer p;
  CHECK_EQ(chown(b->folder, 12345, 12345), 0);
  peer_begin(&p, b->port, NULL);
  EVENTUALLY(LOAD(p.refused) >= 1);
  CHECK_EQ(chown(b->folder, 0, 0), 0);
}

static void expect_folder(const char *runtime, const char *group, const char *folder) {
  SCOPED peer p;
  char path[128];
  CHECK_EQ(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
  transport_options options = peer_create(&p);
  options.group = group;
  peer_connect(&p, &options);
  snprintf(path, sizeof path, "%s/%s", folder, group == NULL ? "default" : group);
  CHECK_EQ(access(path, F_OK), 0);
  peer_release(&p);
  CHECK_EQ(access(path, F_OK), -1);
  CHECK(rmdir(folder) == 0 || group != NULL); /* others may have groups there */
}

/* XDG_RUNTIME_DIR is ignored if it does not name a folder of this user. */
TEST(default_folders) {
  char runtime[] = "/tmp/multicast-runtime-XXXXXX", group[32], folder[96], of_user[64];
  CHECK(mkdtemp(runtime) != NULL);
  snprintf(folder, sizeof folder, "%s/multicast", runtime);
  expect_folder(runtime, NULL, folder);
  snprintf(group, sizeof group, "test-%d", (int)getpid());
  /* The second choice is the folder that systemd creates for a user. */
  snprintf(of_user, sizeof of_user, "/run/user/%u", (unsigned)geteuid());
  const bool is_made = geteuid() == 0 && access(of_user, F_OK) != 0;
  if (is_made) {
    snprintf(folder, sizeof folder, "/tmp/multicast-%u", (unsigned)geteuid());
    expect_folder("/missing/folder", group, folder);
    expect_folder("relative", group, folder);
    CHECK(mkdir("/run/user", 0755) == 0 || errno == EEXIST);
    CHECK_EQ(mkdir(of_user, 0700), 0);
  }
  if (access(of_user, F_OK) == 0) snprintf(folder, sizeof folder, "%s/multicast", of_user);
  else snprintf(folder, sizeof folder, "/tmp/multicast-%u", (unsigned)geteuid());
  expect_folder("/missing/folder", group, folder);
  expect_folder("relative", group, folder);
  expect_folder("/dev/null", group, folder);
  if (geteuid() == 0) {
    CHECK_EQ(chown(runtime, 12345, 12345), 0);
    expect_folder(runtime, group, folder);
    CHECK_EQ(chown(runtime, 0, 0), 0);
  }
  CHECK_EQ(rmdir(runtime), 0);
  /* Another program may have created files in the folder during the test. */
  if (is_made) CHECK(rmdir(of_user) == 0 || errno == ENOTEMPTY);
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN

/* Runs as a user other than root, with the umask `mask`. Two peers meet, and a third peer finds the
 * files of a killed process. */
static void meet_with_umask(void *mask) {
  char folder[] = "/tmp/multicast-umask-XXXXXX", path[96];
  peer here, there;
  const uid_t user = geteuid();
  if (user == 0) CHECK_EQ(seteuid(12345), 0);
  CHECK(mkdtemp(folder) != NULL);
  const mode_t before = umask((mode_t)(uintptr_t)mask);
  for (int round = 0; round < 2; ++round) {
    transport_options options = peer_options(&here, 1);
    /* The first peer creates the folder. */
    snprintf(path, sizeof path, "%s/made", folder);
    options.directory = path;
    options.name = "here";
    peer_connect(&here, &options);
    options = peer_options(&there, 1);
    options.directory = path;
    peer_connect(&there, &options);
    peer_meet(&here, 1);
    peer_release(&there);
    peer_release(&here);
  }
  CHECK_EQ(rmdir(path), 0);
  CHECK_EQ(rmdir(folder), 0);
  umask(before);
  if (user == 0) CHECK_EQ(seteuid(0), 0);
}

TEST(umask_locks_nobody_out) {
  static const mode_t masks[] = {0, 022, 077, 0777, 0700, 0277, 0377, 0577, 0677, 0177};
  for (row = 0; row < (int)(sizeof masks / sizeof *masks); ++row)
    in_child(meet_with_umask, (void *)(uintptr_t)masks[row]);
  row = -1;
}

#endif

/* The socket's path is longer than the system allows in a socket address. */
TEST_OF_BROKER(long_folders_can_be_used, NULL) {
  char folder[200], group[101];
  SCOPED peer here, there;
  snprintf(folder, sizeof folder, "%s/%0100d", b->folder, 0);
  memset(group, 'g', 100);
  group[100] = '\0';
  for (int i = 0; i < 2; ++i) {
    transport_options options = peer_options(i == 0 ? &here : &there, b->port);
    options.directory = folder;
    options.group = group;
    peer_connect(i == 0 ? &here : &there, &options);
  }
  peer_meet(&here, 1);
  peer_release(&here);
  peer_release(&there);
  CHECK_EQ(rmdir(folder), 0);
}

/* The test locks the group, like a process that has been stopped while joining. Other peers cannot
 * join, so they must report the failure and try again. */
TEST_OF_BROKER(group_that_is_locked_is_told_and_tried_again, NULL) {
  SCOPED peer first, p;
  char path[64];
  peer_connect_to(&first, b);
  snprintf(path, sizeof path, "%s/tests/.lock", b->folder);
  int file = open(path, O_RDWR | O_CLOEXEC);
  CHECK(file >= 0);
  CHECK_EQ(flock(file, LOCK_EX), 0);
  transport_options options = peer_options(&p, b->port);
  p.expected = "locked";
  CHECK_OK(transport_connect(&options, &p.transport));
  EVENTUALLY(LOAD(p.refused_as_expected) >= 1);
  close(file);
  EVENTUALLY(LOAD(p.connected) == 1);
  peer_meet(&p, 1);
}

TEST(options_that_are_wrong_are_refused) {
  static const char *const groups[] = {"", ".", "..", ".a", "a/b", "a b", "\xc3\xa4", "a\n"};
  static char long_name[102];
  peer p;
  transport_options good = peer_options(&p, 1), bad;
#define BAD(field, value) \
  bad = good; \
  bad.field = value; \
  expect_invalid(&bad, &p, MULTICAST_ERROR_INVALID_ARGUMENT)
  for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) {
    BAD(group, groups[i]);
  }
  memset(long_name, 'a', 101);
  BAD(group, long_name);
  BAD(directory, "relative");
  BAD(directory, "");
  BAD(ring_bytes, 65535);
  BAD(ring_bytes, (1u << 30) + 1);
  BAD(ring_bytes, UINT64_MAX);
  BAD(max_payload, (1u << 22) - 1023);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

/* ---- Children -------------------------------------------------------------------------------- */

/* A peer has ended, but a child process still has the peer's socket open. The thread of the other
 * peer must report the end and then sleep, instead of polling the socket endlessly. */
TEST_OF_BROKER(peer_ends_while_a_child_has_its_socket, NULL) {
  SCOPED peer here, there;
  peer_connect_to(&here, b);
  peer_connect_to(&there, b);
  peer_meet(&here, 1);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (;;) pause();
  }
  peer_release(&there);
  EVENTUALLY(LOAD(here.gone) == 1);
  pause_ms(A_WHILE_MS);
  const clock_t before = clock();
  pause_ms(300);
  CHECK(clock() - before < CLOCKS_PER_SEC / 10);
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, NULL, 0), child);
}

/* Returns the number of this process's open sockets. */
static int count_sockets(void) {
  int count = 0;
  for (int file = 0; file < 256; ++file) {
    struct stat status;
    count += fstat(file, &status) == 0 && S_ISSOCK(status.st_mode);
  }
  return count;
}

/* Forks, and returns the number of open sockets that the child has. */
static int count_sockets_of_child(void) {
  int status = -1;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(count_sockets());
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

typedef struct busy_thread {
  gate entered, may_leave;
} busy_thread;

static void stay_in_joined(void *context, multicast_local_state state, int32_t pid,
                           const char *text) {
  busy_thread *t = context;
  if (state != MULTICAST_LOCAL_JOINED) return;
  gate_open(&t->entered);
  gate_wait(&t->may_leave);
}

/* A released transport keeps its sockets until its thread, which may be inside one of the program's
 * functions, has left the group. A child must not keep these sockets either. If it kept the
 * listening socket, a new member of the group could connect to it and wait for an answer. */
TEST_OF_BROKER(child_has_no_sockets_of_a_released_transport, NULL) {
  SCOPED peer here;
  peer busy;
  busy_thread t = {GATE_INIT, GATE_INIT};
  const int before = count_sockets();
  peer_connect_to(&here, b);
  transport_options options = peer_options(&busy, b->port);
  options.changed = stay_in_joined;
  options.context = &t;
  CHECK_OK(multicast_local_connect(&options, &busy.transport));
  gate_wait(&t.entered);
  busy.transport.release(busy.transport.context);
  CHECK(count_sockets() > before);
  CHECK_EQ(count_sockets_of_child(), before);
  gate_open(&t.may_leave);
  EVENTUALLY(LOAD(here.gone) == 1);
  CHECK_OK(multicast_broadcaster_destroy(busy.broadcaster));
}

#ifndef IS_WITHOUT_THREADS_IN_CHILDREN

typedef struct joiner {
  int port, has_ended;
} joiner;

static void *join_and_leave(void *context) {
  joiner *j = context;
  for (int i = 0; i < 200; ++i) {
    peer first, second;
    broker group = {.port = j->port};
    peer_connect_to(&first, &group);
    peer_connect_to(&second, &group);
    peer_release(&second);
    peer_release(&first);
  }
  STORE(j->has_ended, 1);
  return NULL;
}

/* The children are created at any moment while transports open and close their sockets. */
TEST_OF_BROKER(child_has_no_sockets_of_transports_that_join_or_leave, NULL) {
  SCOPED peer here;
  const int before = count_sockets();
  joiner j = {b->port, 0};
  peer_connect_to(&here, b); /* registers the fork handlers */
  pthread_t thread = start_thread(join_and_leave, &j);
  while (!LOAD(j.has_ended)) CHECK_EQ(count_sockets_of_child(), before);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

#endif

/* ---- Meeting --------------------------------------------------------------------------------- */

static gate greeting = GATE_INIT;

static void wait_in_joined(void *context, multicast_local_state state, int32_t pid,
                           const char *text) {
  if (state == MULTICAST_LOCAL_JOINED) gate_wait(&greeting);
}

/* The late peer has sent its hello, but has not read another peer's hello, because the late peer's
 * thread is busy. The other peers must not disconnect the late peer. */
TEST_OF_BROKER(peer_that_hears_late_is_not_cut_off, NULL) {
  SCOPED peer first, second, late;
  int calls = 0;
  peer_connect_to(&first, b);
  peer_connect_to(&second, b);
  peer_observe(&first, "n", counter(&calls));
  peer_observe(&second, "n", counter(&calls));
  CHECK_OK(peer_publish(&first, "n", 1, "x", 1));
  CHECK_OK(peer_publish(&second, "n", 1, "x", 1));
  transport_options options = peer_options(&late, b->port);
  options.changed = wait_in_joined;
  CHECK_OK(multicast_local_connect(&options, &late.transport));
  EVENTUALLY(peer_stats(&first).peers == 2 && peer_stats(&second).peers == 2);
  CHECK_ERROR(multicast_local_flush(&first.transport, 20000000), TIMEOUT);
  CHECK_ERROR(multicast_local_flush(&second.transport, 20000000), TIMEOUT);
  gate_open(&greeting);
  peer_flush(&first);
  peer_flush(&second);
  CHECK_EQ(peer_stats(&first).expelled + peer_stats(&second).expelled, 0);
}

static int listening_takes_ms;

/* Replaces listen() of libc, and waits before the system call. During the wait, the socket file
 * exists, but the socket does not accept connections. */
int listen(int s, int backlog) {
  pause_ms(LOAD(listening_takes_ms));
  return (int)syscall(SYS_listen, s, backlog);
}

TEST_OF_BROKER(socket_of_one_that_joins_is_not_removed, NULL) {
  SCOPED peer here, old, new, last;
  peer_connect_to(&here, b);
  peer_connect_to(&old, b);
  peer_meet(&here, 1);
  STORE(listening_takes_ms, 300);
  peer_begin(&new, b->port, NULL);
  pause_ms(100);
  peer_release(&old); /* `here` then removes other socket files of this process */
  EVENTUALLY(LOAD(new.connected) == 1);
  STORE(listening_takes_ms, 0);
  peer_connect_to(&last, b);
  peer_meet(&last, 2);
}

/* ---- Leaving --------------------------------------------------------------------------------- */

static gate telling = GATE_INIT;
static int is_told;

static void wait_in_changed(void *context, multicast_local_state state, int32_t pid,
                            const char *text) {
  STORE(is_told, 1);
  gate_wait(&telling);
}

/* Releasing a transport does not wait for its thread if that thread is running `changed`. The
 * function `release` in the options is called later, when the peer has left the group and its files
 * have been removed. */
TEST_OF_BROKER(last_one_has_left_before_options_are_released, NULL) {
  peer p;
  char path[64];
  transport_options options = peer_options(&p, b->port);
  snprintf(path, sizeof path, "%s/tests", b->folder);
  options.changed = wait_in_changed;
  CHECK_OK(multicast_local_connect(&options, &p.transport));
  EVENTUALLY(LOAD(is_told) == 1);
  p.transport.release(p.transport.context);
  CHECK_EQ(LOAD(p.releases), 0);
  CHECK_EQ(access(path, F_OK), 0);
  gate_open(&telling);
  EVENTUALLY(LOAD(p.releases) == 1);
  CHECK_EQ(access(path, F_OK), -1);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* If the library did not check the limit, the system would send SIGXFSZ to the process. */
TEST(ring_that_is_larger_than_files_may_be_is_refused) {
  struct rlimit most;
  peer p;
  transport_options options = peer_options(&p, 1);
  CHECK_EQ(getrlimit(RLIMIT_FSIZE, &most), 0);
  const struct rlimit less = {1 << 20, most.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_FSIZE, &less), 0);
  expect_invalid(&options, &p, MULTICAST_ERROR_SYSTEM);
  CHECK_EQ(setrlimit(RLIMIT_FSIZE, &most), 0);
  CHECK_OK(multicast_broadcaster_destroy(p.broadcaster));
}
