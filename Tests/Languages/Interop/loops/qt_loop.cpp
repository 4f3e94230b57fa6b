// SPDX-License-Identifier: MIT
//
// With Qt, the queue can wake the event loop in two ways.
//
// A `wake` function can post an event to an object with QMetaObject::invokeMethod() and
// Qt::QueuedConnection, which any thread may do. Such events work with every event dispatcher of
// Qt, on every system.
//
// Alternatively, a QSocketNotifier can watch the queue's descriptor, which allocates no memory.

#include "worker.h"

#include <QCoreApplication>
#include <QMetaObject>
#include <QSocketNotifier>

namespace {

constexpr int callsAtATime = 3;

// An object that belongs to the loop's thread and runs the queue on that thread.
class Runner : public QObject {
public:
  void run() {
    must(multicast_queue_run(queue, callsAtATime) >= 0, "multicast_queue_run");
    if (worker_is_done(&worker)) QCoreApplication::quit();
  }

  multicast_queue queue = {0};
  struct worker worker;
};

// Runs on the worker's thread, or on the loop's thread if a run leaves calls in the queue. Even on
// the loop's thread, Qt posts the event instead of handling it immediately, so that the loop
// handles other events in between.
void wake(void *context) {
  Runner *runner = static_cast<Runner *>(context);
  QMetaObject::invokeMethod(runner, [runner] { runner->run(); }, Qt::QueuedConnection);
}

int runWokenByCalls() {
  Runner runner;
  multicast_queue_options options = multicast_queue_options_default();
  options.wake = wake;
  options.wake_context = &runner;
  runner.queue = multicast_queue_create(&options);
  must(runner.queue.id != 0, "multicast_queue_create");

  worker_start(&runner.worker, runner.queue);
  QCoreApplication::exec();

  // The worker is still sending. Destroying the queue waits until a running `wake` has returned,
  // and no thread calls `wake` afterwards.
  must(multicast_queue_destroy(runner.queue) == MULTICAST_OK, "multicast_queue_destroy");
  // No `wake` can run any more, so the object that `wake` uses may be destroyed now. Qt drops the
  // events posted to the object.
  return worker_finish(&runner.worker, "Qt, invokeMethod");
}

int runWokenByDescriptor() {
  Runner runner;
  runner.queue = multicast_queue_create(nullptr);
  must(runner.queue.id != 0, "multicast_queue_create");
  const int descriptor = multicast_queue_fd(runner.queue);
  must(descriptor >= 0, "multicast_queue_fd");
  {
    QSocketNotifier notifier(descriptor, QSocketNotifier::Read);
    QObject::connect(&notifier, &QSocketNotifier::activated, &runner, &Runner::run);

    worker_start(&runner.worker, runner.queue);
    QCoreApplication::exec();
  }
  // The notifier must be destroyed first, because destroying the queue closes the descriptor.
  must(multicast_queue_destroy(runner.queue) == MULTICAST_OK, "multicast_queue_destroy");
  return worker_finish(&runner.worker, "Qt, QSocketNotifier");
}

}  // namespace

int main(int argc, char **argv) {
  QCoreApplication application(argc, argv);
  const int calls = runWokenByCalls();
  const int descriptor = runWokenByDescriptor();
  return calls == EXIT_SUCCESS ? descriptor : calls;
}
