import CMulticast

/// Identifies a delegate, observer or closure from its addition to its removal.
///
/// A registration is a number that you may store, copy, compare or ignore. It keeps no object
/// alive. After the delegate has been removed, the registration never becomes live again.
public struct Registration: Hashable, Sendable {
  let id: UInt64

  init(_ token: Multicast.Token) { id = token.id }

  var token: Multicast.Token { Multicast.Token(id: id) }

  /// The registration whose delegate this thread is calling; nil outside calls.
  ///
  /// A delegate can use it to remove or pause itself.
  ///
  /// - Complexity: O(1).
  public static var current: Registration? {
    let token = Multicast.Token.current
    return token.id == 0 ? nil : Registration(token)
  }

  /// Whether the registration is live, that is, has not been removed. The registration of a
  /// deallocated weak delegate is live until an invocation or ``MulticastDelegate/prune()`` detects
  /// the deallocation.
  ///
  /// - Complexity: O(1).
  public var isValid: Bool { token.isValid }

  /// Whether the delegate is paused.
  ///
  /// - Complexity: O(1).
  public var isPaused: Bool { described?.isPaused ?? false }

  /// The core's description of the registration; nil if it has been removed.
  private var described: Multicast.Registration? {
    var registration = Multicast.Registration.default
    let status = token.getRegistration(&registration)
    return status == .ok ? registration : nil
  }

  var events: UInt64 { described?.events ?? 0 }

  /// Removes the delegate, and waits until no other thread is calling it.
  ///
  /// Inside a call to the delegate, the function does not wait and returns ``Removal/pending``. Do
  /// not hold a lock that the delegate acquires, because this could cause a deadlock.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove() -> Removal { Removal(token.remove()) }

  /// Removes the delegate, and waits for its running calls, up to a timeout.
  ///
  /// - Parameter limit: The timeout. If it is zero or negative, the function does not wait.
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove(within limit: Duration) -> Removal {
    Removal(token.remove(withinNanoseconds: limit.nanoseconds))
  }

  /// Excludes the delegate from invocations until it is resumed.
  ///
  /// - Returns: False if the delegate has been removed.
  /// - Complexity: O(1).
  @discardableResult
  public func pause() -> Bool { token.pause() == .ok }

  /// Ends a pause. The delegate keeps its position.
  ///
  /// - Returns: False if the delegate has been removed.
  /// - Complexity: O(1).
  @discardableResult
  public func resume() -> Bool { token.resume() == .ok }

  /// Puts this registration into a bag, which removes it when the bag is deallocated.
  ///
  /// - Complexity: O(1), amortized.
  public func store(in bag: RegistrationBag) { bag.insert(self) }

  /// An object whose deallocation removes this registration.
  ///
  /// - Complexity: O(1).
  public var scoped: ScopedRegistration { ScopedRegistration(self) }
}

extension Duration {
  /// The duration in nanoseconds, for the C interface. A negative duration becomes 0, and a
  /// duration that is too long becomes `UInt64.max`.
  var nanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    if seconds < 0 || attoseconds < 0 { return 0 }
    let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return .max }
    let (sum, carry) = product.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    return carry ? .max : sum
  }
}
