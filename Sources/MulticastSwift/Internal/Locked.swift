import MulticastRuntime

/// A value protected by a mutex.
///
/// `@unchecked` is safe because `value` is accessed only under the mutex, and all results are
/// `Sendable`.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let lock = multicast_swift_lock_create()
  private var value: Value

  init(_ value: Value) { self.value = value }

  deinit { multicast_swift_lock_destroy(lock) }

  /// Calls `body` under the lock. `body` must not run the program's code.
  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    multicast_swift_lock(lock)
    defer { multicast_swift_unlock(lock) }
    return body(&value)
  }
}
