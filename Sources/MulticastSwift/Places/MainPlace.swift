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
