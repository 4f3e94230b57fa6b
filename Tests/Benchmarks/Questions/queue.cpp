// How much does a queued call cost, and how long does it wait until it is made?

#include <malloc.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "question.hpp"
#include "queues.hpp"

static constexpr uint32_t capacity = 1024;
static constexpr size_t message = 16;
static const unsigned char payload[4096] = {};

// ---- On one thread ------------------------------------------------------------------------------

template <class Queue> static void call_here(benchmark::State &state, size_t size) {
  receiver to(UINT64_MAX, 1, capacity);
  Queue queue(to, capacity);
  for (auto _ : state) {
    queue.push(0, payload, size);
    queue.run_one();
  }
  if (to.calls != uint64_t(state.iterations())) state.SkipWithError("not every call was made");
}

// ---- Throughput ---------------------------------------------------------------------------------

/// What keeps producers from getting further ahead of the consumer than the queue's capacity
/// allows. Because some queues are unbounded, all queues are compared with `paced`, in which the
/// producers wait for the receiver.
enum class bound { paced, blocking };

template <class Queue>
static void produce(Queue &queue, receiver &to, bound by, uint32_t producer, uint64_t count,
                    size_t size) {
  uint64_t until_next = 1;
  for (uint64_t sent = 0; sent < count; sent++) {
    if (by == bound::paced && --until_next == 0) {
      until_next = to.batch;
      to.wait_for_room(producer);
    }
    queue.push(producer, payload, size);
  }
}

/// Measures the time from the first send to the last arrival. An iteration consists of 16,384
/// messages.
template <class Queue>
static void throughput(benchmark::State &state, bound by, uint32_t producers, size_t size) {
  const uint64_t total = uint64_t(state.max_iterations) * 16384;
  receiver to(total, producers, capacity);
  Queue queue(to, capacity);
  queue.start();

  std::promise<void> open;
  std::shared_future<void> opened = open.get_future().share();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < producers; i++) {
    threads.emplace_back([&, i] {
      opened.wait();
      produce(queue, to, by, i, total / producers, size);
    });
  }
  int64_t taken = 0;
  while (state.KeepRunningBatch(state.max_iterations)) {
    const int64_t begin = now();
    open.set_value();
    queue.deliver();
    taken = now() - begin;
  }
  for (auto &thread : threads) thread.join();

  if (to.calls != total || to.bytes != total * size) state.SkipWithError("messages are missing");
  state.SetItemsProcessed(int64_t(total));
  state.counters["ns_per_message"] = double(taken) / double(total);
}

// ---- Latency ------------------------------------------------------------------------------------

/// Measures the time from the send to the start of the call. One message is sent every 20 us,
/// regardless of the number of producers, so the consumer is asleep when a message arrives. An
/// iteration consists of 4,096 messages.
template <class Queue> static void latency(benchmark::State &state, uint32_t producers) {
  constexpr uint64_t total = 4096;
  constexpr std::chrono::microseconds pace(20);
  std::vector<int64_t> latencies;

  for (auto _ : state) {
    latencies.reserve(latencies.size() + total);
    receiver to(total, producers, capacity);
    to.latencies = &latencies;
    Queue queue(to, capacity);
    queue.start();

    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < producers; i++) {
      threads.emplace_back([&, i] {
        prctl(PR_SET_TIMERSLACK, 1ul);  // the default is 50 us
        auto next = begin + i * pace;
        for (uint64_t sent = 0; sent < total / producers; sent++) {
          // A thread that has fallen behind does not catch up. Otherwise, it would send the overdue
          // messages in a burst.
          next = std::max(next + producers * pace, std::chrono::steady_clock::now());
          std::this_thread::sleep_until(next);
          int64_t stamped[message / sizeof(int64_t)] = {now()};
          queue.push(i, stamped, sizeof stamped);
        }
      });
    }
    queue.deliver();
    for (auto &thread : threads) thread.join();
  }

  std::sort(latencies.begin(), latencies.end());
  auto percentile = [&](double part) {
    return double(latencies[size_t(part * double(latencies.size()))]);
  };
  state.counters["p50"] = percentile(0.5);
  state.counters["p99"] = percentile(0.99);
  state.counters["p999"] = percentile(0.999);
}

template <class Queue> static void register_throughput(const char *measure, int64_t parameter,
                                                       bound by, uint32_t producers, size_t size) {
  add_benchmark(measure, Queue::name(), parameter,
                throughput<Queue>, by, producers, size)
      ->UseRealTime()->Unit(benchmark::kMicrosecond);
}

int main(int argc, char **argv) {
  // By default malloc returns memory to the system whenever a queue with large payloads becomes
  // empty. A fast consumer empties the queue often, so page faults would dominate the result.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);

  auto here = [](auto each) {
    using queue = typename decltype(each)::contender;
    add_benchmark("queued call, same thread", queue::name(), message, call_here<queue>, message);
  };
  polled_queues::for_each(here);
  peer_queues::for_each(here);
  small_queues::for_each(here);
  bare_system_calls::for_each(here);

  for (uint32_t producers : {1, 2, 4}) {
    auto from_producers = [&](auto each) {
      using queue = typename decltype(each)::contender;
      register_throughput<queue>("queued throughput", producers, bound::paced, producers, message);
      if (queue::is_bounded)
        register_throughput<queue>("queued throughput, full queue blocks", producers,
                                   bound::blocking, producers, message);
      add_benchmark("queued latency", queue::name(), producers,
                    latency<queue>, producers)->UseRealTime()->Unit(benchmark::kMillisecond);
    };
    polled_queues::for_each(from_producers);
    threaded_queues::for_each(from_producers);
    peer_queues::for_each(from_producers);
    small_queues::for_each(from_producers);
  }

  for (size_t size : {0, 16, 256, 4096}) {
    auto of_size = [&](auto each) {
      using queue = typename decltype(each)::contender;
      register_throughput<queue>("queued throughput by payload", int64_t(size), bound::paced, 1,
                                 size);
    };
    polled_queues::for_each(of_size);
    threaded_queues::for_each(of_size);
    peer_queues::for_each(of_size);
  }
  return run_question(argc, argv);
}
