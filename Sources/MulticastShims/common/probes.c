// USDT probes, at which bpftrace, perf, SystemTap and gdb can inspect a running program. Each probe
// consists of a `nop` instruction and a note in the ELF file. The note contains the address of the
// probe and the registers that contain its arguments. Without <sys/sdt.h> the functions do nothing.

#include "probes.h"

// CMake defines MULTICAST_PROBES, but SwiftPM does not. On macOS, <sys/sdt.h> belongs to a
// different kind of probe.
#ifndef MULTICAST_PROBES
#if defined __has_include && defined __ELF__
#if __has_include(<sys/sdt.h>)
#define MULTICAST_PROBES 1
#endif
#endif
#endif

#if MULTICAST_PROBES
// The arguments are already in registers.
#define STAP_SDT_ARG_CONSTRAINT r
#include <sys/sdt.h>
// Tools compute a probe's address relative to this symbol. Only notes refer to the symbol. Some
// linkers ignore references from notes, and would remove the symbol. This relocation keeps the
// symbol.
#define KEEP_BASE __asm__ __volatile__(".reloc ., BFD_RELOC_NONE, _.stapsdt.base")
#else
#define STAP_PROBE1(provider, name, a) (void)(a)
#define STAP_PROBE3(provider, name, a, b, c) (void)(a), (void)(b), (void)(c)
#define STAP_PROBE4(provider, name, a, b, c, d) (void)(a), (void)(b), (void)(c), (void)(d)
#define KEEP_BASE
#endif

// All probes are in one section, because linkers that merge identical code compare sections, and
// would merge several probes into one.
#ifdef __ELF__
#define PROBE __attribute__((noinline, section(".text.multicast_probes")))
#else
#define PROBE __attribute__((noinline))
#endif

PROBE void shims_probe_invoke_begin(uint64_t multicast, uint64_t event, const void *payload,
                                    size_t size) {
  STAP_PROBE4(multicast, invoke__begin, multicast, event, payload, size);
  KEEP_BASE;
}

PROBE void shims_probe_invoke_end(uint64_t multicast, uint64_t event, int64_t called) {
  STAP_PROBE3(multicast, invoke__end, multicast, event, called);
}

PROBE void shims_probe_call_begin(uint64_t token, uint64_t event,
                                  void (*function)(void *, uint32_t, const void *, size_t),
                                  const void *context) {
  STAP_PROBE4(multicast, call__begin, token, event, function, context);
}

PROBE void shims_probe_call_end(uint64_t token, uint64_t event, uint64_t elapsed_ns,
                                const char *label) {
  STAP_PROBE4(multicast, call__end, token, event, elapsed_ns, label);
}

PROBE void shims_probe_queue_append(uint64_t queue, uint64_t token, uint64_t event,
                                    uint64_t outcome) {
  STAP_PROBE4(multicast, queue__append, queue, token, event, outcome);
}

PROBE void shims_probe_queue_run(uint64_t queue, uint64_t token, uint64_t event) {
  STAP_PROBE3(multicast, queue__run, queue, token, event);
}

PROBE void shims_probe_remove_wait(uint64_t token) { STAP_PROBE1(multicast, remove__wait, token); }
