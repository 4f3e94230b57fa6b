#include "question.hpp"

#include <thread>

#include "missing_peers.h"

int run_question(int argc, char **argv, const std::string &not_thread_safe) {
  benchmark::AddCustomContext("missing_peers", MISSING_PEERS);
  if (!not_thread_safe.empty()) benchmark::AddCustomContext("not_thread_safe", not_thread_safe);
  // As long as a process has never had a second thread, glibc's locks and std::shared_ptr use no
  // atomic operations. Start a second thread, because programs that need locks have several
  // threads.
  std::thread([] {}).join();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
