extension Registration {
  /// Calls a delegate that this thread has named and found live, with its context locked where that
  /// counts references, and removed before where it is to be called once.
  ///
  /// - Returns: whether it was called: not if its context is dead, or others have come first.
  func callNamed(
    _ token: UInt64, context: UnsafeMutableRawPointer?, isOnce: Bool,
    _ body: (_ context: UnsafeMutableRawPointer?) -> Void
  ) -> Bool {
    // Read before: from the call on, the delegate may be removed by itself.
    let extras = storage.pointee.extras
    let (lock, unlock) = (extras?.pointee.lock, extras?.pointee.unlock)
    Lock.checkNoneIsHeld()
    let strong = lock.map { $0(context) } ?? context
    let isDead = lock != nil && strong == nil
    // Locking may have removed it, or taken so long that somebody else has.
    let isToGo = isDead || isOnce
    let isOurs = isToGo ? Multicast(slot: owner).claim(token) : id == token
    let isCalled = isOurs && !isDead
    if isCalled { body(strong) }
    if !isDead { unlock?(strong) }
    return isCalled
  }
}
