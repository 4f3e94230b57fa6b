#include "steps.h"

#include "../Interface/harness.h"

#include <link.h>
#include <signal.h>
#include <ucontext.h>

enum { TRAP_FLAG = 0x100 };

static int asked, answered;
static bool needs_no_lock; /* `answer` has called need_no_lock() */
static bool is_watched;
static due (*is_due)(void);
static uintptr_t code, end_of_code; /* the bounds of the library's code */
static struct sigaction before;

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

static void step(int signal, siginfo_t *information, void *machine) {
  (void)signal, (void)information;
  greg_t *registers = ((ucontext_t *)machine)->uc_mcontext.gregs;
  uintptr_t next = (uintptr_t)registers[REG_RIP];
  if (!LOAD(is_watched)) registers[REG_EFL] &= ~TRAP_FLAG;
  if (!LOAD(is_watched) || next < code || next >= end_of_code) return;
  if (LOAD(asked) != LOAD(answered)) return;
  due now = is_due();
  if (now == NO_MORE) registers[REG_EFL] &= ~TRAP_FLAG;
  if (now != NOW) return;
  ADD(asked, 1);
  for (int waited_ms = 0; LOAD(asked) != LOAD(answered); ++waited_ms) {
    if (waited_ms >= 100 && !LOAD(needs_no_lock)) return;
    pause_ms(1);
  }
}

void begin_steps(void) {
  __asm__ volatile("pushfq\n orq %0, (%%rsp)\n popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
}

static void *be_watched(void *body) {
  (*(void (**)(void))body)();
  STORE(is_watched, false);
  return NULL;
}

int answer_at_steps(void (*body)(void), due (*when)(void), void (*answer)(void)) {
  struct sigaction action = {0};
  action.sa_sigaction = step;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  CHECK_EQ(sigaction(SIGTRAP, &action, &before), 0);
  CHECK_EQ(dl_iterate_phdr(find_code, NULL), 1);
  asked = answered = 0;
  is_due = when;
  STORE(is_watched, true);
  pthread_t thread = start_thread(be_watched, &body);
  while (LOAD(is_watched)) {
    if (LOAD(asked) == LOAD(answered)) continue;
    answer();
    STORE(needs_no_lock, false);
    ADD(answered, 1);
  }
  join_thread(thread);
  forget_steps();
  return answered;
}

static int instruction, answered_at;

static due at_one_step(void) {
  if (instruction > answered_at) return NO_MORE;
  return instruction++ == answered_at ? NOW : NOT_YET;
}

int answer_at_step(int number, void (*body)(void), void (*answer)(void)) {
  instruction = 0;
  answered_at = number;
  return answer_at_steps(body, at_one_step, answer);
}

void need_no_lock(void) { STORE(needs_no_lock, true); }

void forget_steps(void) { CHECK_EQ(sigaction(SIGTRAP, &before, NULL), 0); }
