import MulticastRuntime

/// A value that one thread at a time uses.
///
/// `@unchecked`: `value` is used under the mutex only, and only `Sendable` results are passed out.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = multicast_swift_lock_create()
  private var value: Value

  init(_ value: Value) { self.value = value }

  deinit { multicast_swift_lock_destroy(lock) }

  /// The lock is held while `body` runs: it must not run code of others.
  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    multicast_swift_lock(lock)
    defer { multicast_swift_unlock(lock) }
    return body(&value)
  }
}
