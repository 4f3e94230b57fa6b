import CMulticast

/// A group of registrations that are removed together, such as all registrations of a plug-in, a
/// window or a session. The registrations may belong to different multicasts and signals.
///
/// ```swift
/// let session = Lifetime()
/// song.listeners.add(player, lifetime: session)
/// song.titleDidChange.add(lifetime: session) { print($0) }
/// session.end()   // removes both
/// ```
///
/// `deinit` also ends the lifetime, but does not wait for running calls.
public final class Lifetime: Sendable {
  let handle: Multicast.Lifetime

  /// Creates a lifetime. If memory runs out, returns a lifetime that has already ended.
  ///
  /// - Complexity: O(1).
  public init() { handle = Multicast.Lifetime.create() }

  deinit { handle.end(withinNanoseconds: 0) }

  /// The number of registrations in the lifetime.
  ///
  /// - Complexity: O(1).
  public var count: Int {
    withExtendedLifetime(self) { max(0, Int(handle.count)) }
  }

  /// Whether the lifetime has ended. Delegates cannot be added to a lifetime that has ended.
  ///
  /// - Complexity: O(1).
  public var hasEnded: Bool { withExtendedLifetime(self) { !handle.isValid } }

  /// Removes all registrations of the lifetime and waits for their running calls on other threads.
  ///
  /// - Complexity: O(registrations).
  @discardableResult
  public func end() -> Removal {
    withExtendedLifetime(self) { Removal(handle.end()) }
  }

  /// Removes all registrations of the lifetime and waits for their running calls, up to a timeout.
  ///
  /// - Parameter limit: The timeout. If it is zero or negative, the function does not wait.
  /// - Complexity: O(registrations).
  @discardableResult
  public func end(within limit: Duration) -> Removal {
    withExtendedLifetime(self) { Removal(handle.end(withinNanoseconds: limit.nanoseconds)) }
  }
}
