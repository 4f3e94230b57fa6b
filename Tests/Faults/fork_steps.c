/* Forks while another thread is inside the library: at each of its instructions. The processor
 * stops that thread after each one, by a flag that x86-64 lets a thread set. */

#include "child.h"

#include <link.h>
#include <signal.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100, THREADS_IN_A_BLOCK = 64, MOST_THREADS = 3 * THREADS_IN_A_BLOCK };

/* ---- The watched thread ---------------------------------------------------------------------- */

static int asked, forked; /* how many forks */
static bool is_watched;
static uintptr_t code, end_of_code; /* of the library */

static int find_code(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size, (void)unused;
  if (strstr(object->dlpi_name, "libmulticast") == NULL) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
    code = object->dlpi_addr + part->p_vaddr;
    end_of_code = code + part->p_memsz;
  }
  return 1;
}

/* Asks for a fork, and waits for it. While this thread has a lock of the library, the fork waits
 * for the lock: so this goes on, and asks again after the fork. */
static void step(int signal, siginfo_t *information, void *machine) {
  (void)signal, (void)information;
  greg_t *registers = ((ucontext_t *)machine)->uc_mcontext.gregs;
  if (!LOAD(is_watched)) {
    registers[REG_EFL] &= ~TRAP_FLAG;
    return;
  }
  uintptr_t next = (uintptr_t)registers[REG_RIP];
  if (next < code || next >= end_of_code || LOAD(asked) != LOAD(forked)) return;
  ADD(asked, 1);
  for (int waited_ms = 0; waited_ms < 100 && LOAD(asked) != LOAD(forked); ++waited_ms) pause_ms(1);
}

/* The body of a thread: what it does with the library is watched. */
static void *be_watched(void *body) {
  STORE(is_watched, true);
  __asm__ volatile("pushfq\n orq %0, (%%rsp)\n popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
  (*(void (**)(void))body)();
  STORE(is_watched, false);
  return NULL;
}

/* Returns how many forks there were. */
static int fork_at_each_step(void (*body)(void), void (*be_child)(void)) {
  struct sigaction action = {0}, before;
  action.sa_sigaction = step;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  CHECK_EQ(sigaction(SIGTRAP, &action, &before), 0);
  CHECK_EQ(dl_iterate_phdr(find_code, NULL), 1);
  asked = forked = 0;
  pthread_t thread = start_thread(be_watched, &body);
  EVENTUALLY(LOAD(is_watched));
  while (LOAD(is_watched)) {
    if (LOAD(asked) == LOAD(forked)) continue;
    pid_t child = begin_child();
    if (child == 0) {
      CHECK_EQ(sigaction(SIGTRAP, &before, NULL), 0);
      be_child();
      _Exit(0);
    }
    ADD(forked, 1);
    CHECK_EQ(end_of_child(child), 0);
  }
  join_thread(thread);
  return forked;
}

/* ---- Records of threads ---------------------------------------------------------------------- */

static gate may_end = GATE_INIT;
static int prepared;

static void *prepare(void *until) {
  CHECK_OK(multicast_thread_prepare());
  ADD(prepared, 1);
  if (until != NULL) gate_wait(until);
  return NULL;
}

static void start_threads(pthread_t *threads, int count, gate *until) {
  prepared = 0;
  for (int i = 0; i < count; ++i) threads[i] = start_thread(prepare, until);
  EVENTUALLY(LOAD(prepared) == count);
}

static void use_more_records_than_the_parent(void) {
  static gate all_end = GATE_INIT;
  pthread_t threads[THREADS_IN_A_BLOCK + 8];
  enum { COUNT = sizeof threads / sizeof *threads };
  start_threads(threads, COUNT, &all_end);
  gate_open(&all_end);
  for (int i = 0; i < COUNT; ++i) join_thread(threads[i]);
}

static void prepare_this(void) { CHECK_OK(multicast_thread_prepare()); }

static void *fork_while_another_thread_prepares(void *unused) {
  (void)unused;
  prepare_this();
  int forks = fork_at_each_step(prepare_this, use_more_records_than_the_parent);
  CHECK(forks > 50);
  return NULL;
}

/* The record is one of those after the first 64, whose pages the system had. The thread that forks
 * has another one of them: so the child does not get new pages for them. */
TEST(fork_at_each_instruction_of_the_first_use_by_a_thread) {
  static gate none_are_left = GATE_INIT;
  static pthread_t threads[MOST_THREADS];
  start_threads(threads, MOST_THREADS, &none_are_left);
  gate_open(&none_are_left);
  for (int i = 0; i < MOST_THREADS; ++i) join_thread(threads[i]);
  CHECK(multicast_trim() > 0);
  start_threads(threads, THREADS_IN_A_BLOCK, &may_end);
  on_another_thread(fork_while_another_thread_prepares, NULL);
  gate_open(&may_end);
  for (int i = 0; i < THREADS_IN_A_BLOCK; ++i) join_thread(threads[i]);
}
