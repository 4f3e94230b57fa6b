// SPDX-License-Identifier: MIT
//
// Qt, in two ways.
//
// By a call: any thread may post an event to an object, by QMetaObject::invokeMethod() with
// Qt::QueuedConnection. This works with every event dispatcher of Qt, on every system.
//
// By the descriptor: QSocketNotifier watches it. This allocates nothing.

#include "worker.h"

#include <QCoreApplication>
#include <QMetaObject>
#include <QSocketNotifier>

namespace {

constexpr int callsAtATime = 3;

// Lives in the loop's thread, and runs the queue there.
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
// the loop's thread the event is posted, not handled at once, so that the loop handles other events
// in between.
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

  // The worker still sends. This waits for a running `wake`, and none begins afterwards.
  must(multicast_queue_destroy(runner.queue) == MULTICAST_OK, "multicast_queue_destroy");
  // So the object that `wake` uses may be destroyed now. Qt drops the events posted to it.
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
  // The notifier must end before the queue is destroyed, because that closes the descriptor.
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
