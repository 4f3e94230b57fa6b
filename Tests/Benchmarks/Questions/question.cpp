#include "question.hpp"

#include <thread>

#include "contenders.hpp"
#include "missing_peers.h"

int run_question(int argc, char **argv) {
  benchmark::AddCustomContext("missing_peers", MISSING_PEERS);
  benchmark::AddCustomContext("not_thread_safe", [] {
    std::string names;
    auto append = [&](auto each) {
      using contender = typename decltype(each)::contender;
      if (!contender::is_thread_safe) names += (names.empty() ? "" : ";") + contender::name();
    };
    bare_loops::for_each(append);
    peers::for_each(append);
    return names;
  }());
  // As long as a process has never had a second thread, glibc's locks and std::shared_ptr use no
  // atomic operations. Programs that need locks have several threads.
  std::thread([] {}).join();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
