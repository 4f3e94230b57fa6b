import Dispatch

/// Where a delegate, an observer or a closure is called.
///
/// For the main actor there is ``MainPlace``.
public enum Place: Sendable {
  /// On the thread that notifies, before the notification returns.
  case notifier
  /// On a dispatch queue, later.
  case queue(DispatchQueue)
  /// In a task of an executor, later. The order of several calls is up to the executor.
  case executor(any TaskExecutor)
  /// On the thread that runs a delivery, later.
  case delivery(Delivery)

  /// Calls a registration there: does this work.
  ///
  /// - Parameter losses: Counts the work if a delivery refuses or drops it, while the registration
  ///   is live.
  /// - Returns: False if a delivery has refused the work.
  func perform(
    for registration: Registration, _ losses: LossCounter? = nil,
    _ work: @escaping @Sendable () -> Void
  ) -> Bool {
    switch self {
    case .notifier: work()
    case .queue(let queue): queue.async(execute: work)
    case .executor(let executor): Task(executorPreference: executor) { work() }
    case .delivery(let delivery):
      return delivery.perform(DeferredCall(work, for: registration, losses))
    }
    return true
  }
}

/// The main actor, as a place: `.main`. The closure may be one of the main actor.
///
/// ```swift
/// titleDidChange.add(on: .main) { label.text = $0 }
/// ```
///
/// Calls are made on the main queue, later, in order; also if the notifier is on the main actor.
public struct MainPlace: Sendable {
  /// The main actor.
  public static let main = MainPlace()

  /// The main queue is the executor of the main actor.
  let place = Place.queue(.main)
}
