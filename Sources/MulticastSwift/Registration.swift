import CMulticast

/// One delegate, observer or closure, from the moment it is added until it is removed.
///
/// A registration is a number: keep, copy, compare or ignore it. It keeps no object alive. When its
/// delegate has been removed in any way, it is never live again.
public struct Registration: Hashable, Sendable {
  let id: UInt64

  init(_ token: Multicast.Token) { id = token.id }

  var token: Multicast.Token { Multicast.Token(id: id) }

  /// The registration that this thread is calling now; nil outside of all calls.
  ///
  /// So a delegate can remove or pause itself.
  ///
  /// - Complexity: O(1).
  public static var current: Registration? {
    let token = Multicast.Token.current
    return token.id == 0 ? nil : Registration(token)
  }

  /// Whether the delegate has not been removed. A weak delegate that has ended counts as live until
  /// a call, or ``MulticastDelegate/prune()``, detects the end.
  ///
  /// - Complexity: O(1).
  public var isValid: Bool { token.isValid }

  /// Whether it is paused.
  ///
  /// - Complexity: O(1).
  public var isPaused: Bool { described?.isPaused ?? false }

  /// The core's description of it; nil if it was removed.
  private var described: Multicast.Registration? {
    var registration = Multicast.Registration.default
    let status = token.getRegistration(&registration)
    return status == .ok ? registration : nil
  }

  var events: UInt64 { described?.events ?? 0 }

  /// Removes the delegate, and waits until no other thread is in a call of it.
  ///
  /// Inside a call of the delegate the result is ``Removal/pending``: the function does not wait.
  /// Do not hold a lock that the delegate takes.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove() -> Removal { Removal(token.remove()) }

  /// Removes the delegate, and waits at most for a given time.
  ///
  /// - Parameter limit: How long. Zero, or less: it does not wait.
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove(within limit: Duration) -> Removal {
    Removal(token.remove(withinNanoseconds: limit.nanoseconds))
  }

  /// Leaves the delegate out of invocations until it is resumed.
  ///
  /// - Returns: False if it was removed.
  /// - Complexity: O(1).
  @discardableResult
  public func pause() -> Bool { token.pause() == .ok }

  /// Ends a pause. The delegate has its old position.
  ///
  /// - Returns: False if it was removed.
  /// - Complexity: O(1).
  @discardableResult
  public func resume() -> Bool { token.resume() == .ok }

  /// Puts this registration into a bag, which removes it when the bag ends.
  ///
  /// - Complexity: O(1), amortized.
  public func store(in bag: RegistrationBag) { bag.insert(self) }

  /// This registration, to be removed when the result has no owner any more.
  ///
  /// - Complexity: O(1).
  public var scoped: ScopedRegistration { ScopedRegistration(self) }
}

extension Duration {
  /// For the C interface: 0 for less than nothing, and the greatest number for more than it holds.
  var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    if seconds < 0 || attoseconds < 0 { return 0 }
    let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return .max }
    let (sum, carry) = product.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    return carry ? .max : sum
  }
}
