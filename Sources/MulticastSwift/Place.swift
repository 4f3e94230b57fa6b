import Dispatch

/// Where an observer or a closure is called.
public enum Place: Sendable {
  /// On the thread that notifies, before the notification returns.
  case notifier
  /// On the main queue, later.
  case main
  /// On a dispatch queue, later.
  case queue(DispatchQueue)
  /// In a task of an executor, later. The order of several calls is up to the executor.
  case executor(any TaskExecutor)
  /// On the thread that runs a delivery, later.
  case delivery(Delivery)

  /// Does some work there. False: the delivery refused the work, which is never done.
  func perform(_ work: @escaping @Sendable () -> Void) -> Bool {
    switch self {
    case .notifier: work()
    case .main: DispatchQueue.main.async(execute: work)
    case .queue(let queue): queue.async(execute: work)
    case .executor(let executor): Task(executorPreference: executor) { work() }
    case .delivery(let delivery): return delivery.perform(work)
    }
    return true
  }

  /// Whether this is certainly the same place. (Two references to the same dispatch queue need not
  /// be identical: then one queue counts as two places.)
  func isSame(as other: Place) -> Bool {
    switch (self, other) {
    case (.notifier, .notifier), (.main, .main): true
    case (.queue(let queue), .queue(let other)): queue === other
    case (.executor(let executor), .executor(let other)): executor === other
    case (.delivery(let delivery), .delivery(let other)): delivery === other
    default: false
    }
  }
}
