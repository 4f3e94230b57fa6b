import Glibc

/// A value that one thread at a time uses.
///
/// As `Mutex` of the standard library, but the thread sanitizer understands this type: `Mutex`
/// waits in code that was compiled without the sanitizer, which then reports false races.
///
/// `@unchecked`: `value` is used under the mutex only, and only `Sendable` results are passed out.
final class Locked<Value: Sendable>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  init(_ value: Value) {
    self.value = value
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// The lock is held while `body` runs: it must not run code of others.
  func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
