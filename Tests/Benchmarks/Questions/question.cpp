#include "question.hpp"

#include "missing_peers.h"

int run_question(int argc, char **argv) {
  benchmark::AddCustomContext("missing_peers", MISSING_PEERS);
  benchmark::AddCustomContext("thread_safe", [] {
    std::string names;
    auto append = [&](auto each) {
      using contender = typename decltype(each)::contender;
      if (contender::is_thread_safe) names += (names.empty() ? "" : ";") + contender::name();
    };
    libmulticasts::for_each(append);
    peers::for_each(append);
    return names;
  }());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
