import CMulticast

/// Registrations, of any multicasts and signals, that end together: those of a plug-in, a window or
/// a session.
///
/// ```swift
/// let session = Lifetime()
/// song.listeners.add(player, lifetime: session)
/// song.titleDidChange.add(lifetime: session) { print($0) }
/// session.end()   // none of them is called any more
/// ```
///
/// Its `deinit` ends it, too, without waiting.
public final class Lifetime: Sendable {
  let handle: Multicast.Lifetime

  /// A lifetime; without memory one that has ended.
  ///
  /// - Complexity: O(1).
  public init() { handle = Multicast.Lifetime.create() }

  deinit { handle.end(withinNanoseconds: 0) }

  /// How many registrations it has.
  ///
  /// - Complexity: O(1).
  public var count: Int {
    withExtendedLifetime(self) { max(0, Int(handle.count)) }
  }

  /// Whether it has ended. Then nothing can be added with it.
  ///
  /// - Complexity: O(1).
  public var hasEnded: Bool { withExtendedLifetime(self) { !handle.isValid } }

  /// Removes all its registrations, and waits until no other thread is in a call of one.
  ///
  /// - Complexity: O(registrations).
  @discardableResult
  public func end() -> Removal {
    withExtendedLifetime(self) { Removal(handle.end()) }
  }

  /// Removes all its registrations, and waits at most for a given time.
  ///
  /// - Parameter limit: How long. Zero, or less: it does not wait.
  /// - Complexity: O(registrations).
  @discardableResult
  public func end(within limit: Duration) -> Removal {
    withExtendedLifetime(self) { Removal(handle.end(withinNanoseconds: limit.nanoseconds)) }
  }
}
