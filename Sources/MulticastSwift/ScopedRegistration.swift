/// Owns a registration, and removes it in `deinit`.
///
/// Keep it in a property of the object that the registration belongs to:
///
/// ```swift
/// private lazy var title = song.titleDidChange.add { print($0) }.scoped
/// ```
///
/// Its `deinit` never waits. An object may lose its last reference anywhere, even while a lock is
/// held, so waiting in `deinit` could cause a deadlock. Memory safety does not require a wait
/// either, because a call that is still running on another thread holds references to the objects
/// that it uses. No call begins after `deinit`. If you need to know that no call is running any
/// more, call ``remove()`` or ``remove(within:)``, which wait.
public final class ScopedRegistration: Sendable {
  /// The registration.
  public let registration: Registration

  /// Takes ownership of a registration.
  ///
  /// - Parameter registration: The registration.
  public init(_ registration: Registration) { self.registration = registration }

  deinit { registration.remove(within: .zero) }

  /// Removes the registration now, and waits until no other thread is calling its delegate.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove() -> Removal { registration.remove() }

  /// Removes the registration now, and waits for its running calls, up to a timeout.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove(within limit: Duration) -> Removal { registration.remove(within: limit) }
}
