/* Checks the fences of the library on the system that runs this program.
 *
 * Two threads write one word each and then read the other thread's word. If neither thread sees the
 * other's write, a processor has reordered a read before a write. Without fences, such reordering
 * happens; a pair of fences must prevent it. The library uses either two full fences, or a compiler
 * fence on one side and a process-wide barrier on the other. */

#include "shims.h"

#include <stdio.h>
#include <windows.h>

enum { LEAST = 3000, SECONDS = 3, LONGEST = 40 }; /* rounds; the second of a count */

typedef struct line {
  _Alignas(128) volatile uint32_t word;
} line;

/* The words contain the numbers of rounds, so they need not be reset. */
static line arrived[2], written[2], seen[2];
static void (*fences[2])(void);
static volatile LONG is_over;

static void no_fence(void) { shims_compiler_fence(); }
static void full_fence(void) { shims_full_fence(); }
static void barrier(void) { shims_membarrier(); }

/* Waits until the other thread has reached the round. Returns false if the time is up. */
static bool meet(int own, uint32_t round) {
  arrived[own].word = round;
  shims_full_fence();
  while (arrived[!own].word < round) {
    if (is_over) return false;
    shims_pause();
  }
  return true;
}

static bool play(int own, uint32_t round) {
  if (!meet(own, 2 * round)) return false;
  for (uint32_t i = 0; i < (round * (own ? 7u : 5u)) % 16; ++i) shims_pause();
  written[own].word = round;
  fences[own]();
  seen[own].word = written[!own].word;
  return meet(own, 2 * round + 1);
}

static DWORD WINAPI other_thread(void *unused) {
  (void)unused;
  for (uint32_t round = 1; play(1, round); ++round) {
  }
  return 0;
}

/* Returns how often neither thread saw the other's write. */
static bool had_enough_rounds = true;
static uint32_t count(const char *name, void (*one)(void), void (*other)(void), uint32_t enough) {
  uint32_t found = 0, round = 1;
  fences[0] = one;
  fences[1] = other;
  is_over = 0;
  for (int i = 0; i < 2; ++i) arrived[i].word = written[i].word = seen[i].word = 0;
  const HANDLE thread = CreateThread(NULL, 0, other_thread, NULL, 0, NULL);
  const uint64_t begin = GetTickCount64();
  for (; play(0, round); ++round) {
    const uint64_t seconds = (GetTickCount64() - begin) / 1000;
    found += seen[0].word < round && seen[1].word < round;
    if (seconds >= LONGEST || (seconds >= SECONDS && round >= LEAST && found >= enough)) break;
  }
  is_over = 1;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
  had_enough_rounds = had_enough_rounds && round >= LEAST;
  printf("%s: %u of %u rounds\n", name, found, round);
  return found;
}

/* The library calls this function when a thread ends. */
void shims_thread_did_end(void *record) { (void)record; }

int main(void) {
  const bool has_barrier = shims_membarrier_register();
  const HMODULE ntdll = GetModuleHandleA("ntdll.dll");
  const bool is_wine = ntdll != NULL && GetProcAddress(ntdll, "wine_get_version") != NULL;
  const uint32_t without = count("no fence", no_fence, no_fence, 1);
  const uint32_t full = count("full fences", full_fence, full_fence, 0);
  const uint32_t flushed = count("FlushProcessWriteBuffers", no_fence, barrier, 0);
  printf("Wine: %s; the library uses %s\n", is_wine ? "yes" : "no",
         has_barrier ? "the barrier" : "full fences");
  if (without == 0 || !had_enough_rounds) return puts("this run was too slow to show anything"), 2;
  if (full > 0) return puts("full fences do not order the accesses"), 1;
  if (is_wine && has_barrier) return puts("Wine was not recognized"), 1;
  if (has_barrier && flushed > 0) return puts("the barrier does not order the accesses"), 1;
  return 0;
}
