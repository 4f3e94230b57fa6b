// How much time is saved by handing over the payload of queued calls instead of copying it?
//
// The program already has the complete payload in its own buffer. A payload that is handed over is
// released after its last call. The release function in this program only counts its calls. A real
// program would return the buffer to a pool, or free it and allocate the next one. Delegates do not
// read the payload.

#include <malloc.h>

#include "libmulticast.hpp"
#include "list.hpp"
#include "question.hpp"

static uint64_t released;

template <class library> struct copied {
  static std::string name() { return library::name() + ", copied"; }
  static constexpr bool is_released = false;

  static void invoke(multicast target, const void *payload, size_t size) {
    library::invoke(target, 0, payload, size);
  }
};

template <class library> struct handed_over {
  static std::string name() { return library::name() + ", handed over"; }
  static constexpr bool is_released = true;

  static void invoke(multicast target, const void *payload, size_t size) {
    multicast_invocation invocation = multicast_invocation_default();
    invocation.payload = payload;
    invocation.size = size;
    invocation.release = [](const void *, size_t) { released++; };
    library::invoke_with(target, &invocation, nullptr);
  }
};

/// Queues the calls of one invocation and runs them on this thread.
template <class library, class Way>
static void invoke_and_run(benchmark::State &state, size_t delegates, size_t size) {
  const std::vector<unsigned char> payload(size, 1);
  std::vector<uint64_t> counters(delegates);
  const multicast_queue queue = library::queue_create(nullptr);
  const multicast target = library::create();
  multicast_add_options options = multicast_add_options_default();
  options.queue = queue;
  for (auto &counter : counters)
    library::add(target, {work_in_executable, &counter}, &options, nullptr);

  released = 0;
  for (auto _ : state) {
    Way::invoke(target, payload.data(), size);
    library::queue_run(queue, delegates);
  }
  library::destroy(target);
  library::queue_destroy(queue);

  const auto invocations = uint64_t(state.iterations());
  for (uint64_t each : counters)
    if (each != invocations * size) return state.SkipWithError("not every call was made");
  if (released != (Way::is_released ? invocations : 0))
    state.SkipWithError("not every payload was released once");
}

template <class library, class Way> static void register_way() {
  for (size_t delegates : {1, 3}) {
    const std::string measure =
        delegates == 1 ? "queued payload, 1 delegate" : "queued payload, 3 delegates";
    for (size_t size : {256, 4096, 65536, 1048576})
      add_benchmark(measure, Way::name(), int64_t(size),
                    invoke_and_run<library, Way>, delegates, size);
  }
}

int main(int argc, char **argv) {
  // By default, malloc maps each large block and unmaps it when it is freed. With this default,
  // page faults would dominate the result, but only for copied payloads.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);

  auto both_ways = [](auto each) {
    using library = typename decltype(each)::contender;
    register_way<library, copied<library>>();
    register_way<library, handed_over<library>>();
  };
  contenders<shared_library, static_library>::for_each(both_ways);
  return run_question(argc, argv);
}
