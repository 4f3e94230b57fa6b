/// Removes a registration when it is deinitialized.
///
/// Keep it in a property of the object that the registration belongs to:
///
/// ```swift
/// private lazy var title = song.titleDidChange.add { print($0) }.scoped
/// ```
///
/// Its `deinit` never waits, on any thread. Waiting is not needed: a call that still runs on
/// another thread has its own references to the objects that it uses, and releases them. No call
/// begins afterwards. An object may lose its last reference anywhere, also where a lock is held,
/// and a wait there could be a deadlock. If no call may be running any more, call ``remove()`` or
/// ``remove(within:)``, which wait.
public final class ScopedRegistration: Sendable {
  /// The registration.
  public let registration: Registration

  /// - Parameter registration: The registration.
  public init(_ registration: Registration) { self.registration = registration }

  deinit { registration.remove(within: .zero) }

  /// Removes it now, and waits until no other thread is in a call of it.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove() -> Removal { registration.remove() }

  /// Removes it now, and waits at most for a given time.
  ///
  /// - Complexity: O(1), amortized.
  @discardableResult
  public func remove(within limit: Duration) -> Removal { registration.remove(within: limit) }
}
