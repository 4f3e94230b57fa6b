import Dispatch

/// Where a delegate, an observer or a closure is called. See ``MainPlace`` for the main actor.
public enum Place: Sendable {
  /// The call is made on the notifying thread, before the notification returns.
  case notifier
  /// The call is made later, on a dispatch queue.
  case queue(DispatchQueue)
  /// The call is made later, in a task on an executor. The executor determines the order of the
  /// calls.
  case executor(any TaskExecutor)
  /// The call is made later, on the thread that runs the delivery.
  case delivery(Delivery)

  /// Runs a registration's call at this place.
  ///
  /// - Parameter losses: The counter to increment if a delivery refuses or drops the call while the
  ///   registration is live.
  /// - Returns: False if a delivery has refused the call.
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

/// The main actor as a place, written `.main`. Closures that are called at this place may be
/// isolated to the main actor.
///
/// ```swift
/// titleDidChange.add(on: .main) { label.text = $0 }
/// ```
///
/// Calls are made later on the main queue, in order, even if the notifier runs on the main actor.
public struct MainPlace: Sendable {
  /// The main actor.
  public static let main = MainPlace()

  /// The executor of the main actor is the main queue.
  let place = Place.queue(.main)
}
