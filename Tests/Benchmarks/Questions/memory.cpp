// How many bytes does an empty signal need, and how many does each delegate need?
//
// Each measurement creates either 100,000 delegates, spread over as many signals as needed, or
// 100,000 empty signals. Memory that is allocated for many objects at a time, or for the library as
// a whole, is averaged over all of these objects. Counting begins before the library is first used
// and includes all allocations by malloc. The count includes the signals or handles that the
// program holds, but not the connections or tokens that the program needs to remove a delegate
// later.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "contenders.hpp"
#include "heap.hpp"
#include "question.hpp"

static constexpr size_t total = 100000;

struct figures {
  int64_t held, stay;            // with all delegates, and after all of them were destroyed
  int64_t hook_held, hook_stay;  // as counted by libmulticast's allocator hook
  bool is_complete;
};

// ---- libmulticast's allocator hook --------------------------------------------------------------

static int64_t hook_bytes = 0;

static void *hook_allocate(void *, size_t size, size_t alignment) {
  void *block = aligned_alloc(alignment < 16 ? 16 : alignment, size);
  if (block) hook_bytes += int64_t(size);
  return block;
}
static void hook_deallocate(void *, void *block, size_t size, size_t) {
  hook_bytes -= int64_t(size);
  free(block);
}

template <class Contender> struct hook {
  static constexpr bool exists = false;
  static bool set() { return true; }
};
template <class library> struct hook<libmulticast_contender<library>> {
  static constexpr bool exists = true;
  static bool set() {
    multicast_allocator allocator = multicast_allocator_default();
    allocator.allocate = hook_allocate;
    allocator.deallocate = hook_deallocate;
    return library::set_allocator(&allocator) == MULTICAST_OK;
  }
};

// ---- Counting -----------------------------------------------------------------------------------

template <class Contender> static void count(size_t signals, size_t each, figures &out) {
  std::vector<uint64_t> counters(signals * each);
  if (!hook<Contender>::set()) return;

  heap::is_counted = true;
  Contender *all = new Contender[signals];
  for (size_t i = 0; i < signals * each; ++i) all[i / each].add(work_in_executable, &counters[i]);
  out.held = heap::bytes;
  out.hook_held = hook_bytes;

  for (size_t i = 0; i < signals; ++i) all[i].invoke(1, nullptr, 0);
  delete[] all;
  out.stay = heap::bytes;
  out.hook_stay = hook_bytes;
  heap::is_counted = false;

  for (uint64_t calls : counters)
    if (calls != 1) return;
  out.is_complete = true;
}

// Returns the figures of a child process that has not used the library before. Libraries often keep
// freed memory for later use, which would affect another measurement in the same process.
template <class Contender> static const figures &counted(size_t each) {
  static std::map<size_t, figures> known;
  auto [place, is_new] = known.try_emplace(each, figures{});
  if (!is_new) return place->second;

  void *shared = mmap(nullptr, sizeof(figures), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return place->second;
  auto *out = new (shared) figures{};
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    count<Contender>(each == 0 ? total : total / each, each, *out);
    _exit(0);
  }
  int status = -1;
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0) place->second = *out;
  munmap(shared, sizeof(figures));
  return place->second;
}

// Stores the results, in bytes, in the benchmark's counters. The time is meaningless.
template <class Contender> static void bytes(benchmark::State &state, size_t each) {
  const figures &none = counted<Contender>(0), &some = counted<Contender>(each);
  if (!none.is_complete || !some.is_complete)
    return state.SkipWithError("not every delegate was called");
  for (auto _ : state) continue;

  auto tell = [&](const std::string &prefix, int64_t figures::*held, int64_t figures::*stay) {
    const double empty = double(none.*held) / total;
    state.counters[prefix + "empty"] = empty;
    if (each > 0)
      state.counters[prefix + "each"] = (double(some.*held) - empty * double(total / each)) / total;
    // `total` is the number of delegates or, if there are none, the number of signals.
    state.counters[prefix + "stay"] = double(some.*stay) / total;
  };
  tell("", &figures::held, &figures::stay);
  if (hook<Contender>::exists) tell("hook_", &figures::hook_held, &figures::hook_stay);
}

int main(int argc, char **argv) {
  for (size_t each : {0, 1, 10, 100, 1000, 10000, 100000}) {
    auto add = [&](auto type) {
      using contender = typename decltype(type)::contender;
      const char *measure = each == 0 ? "bytes of an empty one" : "bytes";
      add_benchmark(measure, contender::name(), int64_t(each),
                    bytes<contender>, each)->Iterations(1);
    };
    contenders<bare_loop_contender<false, 0>>::for_each(add);
    libmulticasts::for_each(add);
    peers::for_each(add);
  }
  benchmark::AddCustomContext("bytes", "malloc_usable_size of each block");
  return run_question(argc, argv, not_thread_safe());
}
