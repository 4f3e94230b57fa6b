extension Registration {
  /// Calls a delegate that this thread's hazard protects and that was found live. The context is
  /// locked if it counts references. A delegate that is called once is removed before.
  ///
  /// - Returns: whether it was called. It is not if its context is dead, or if it was removed
  ///   meanwhile.
  func callProtected(
    _ token: Token, context: UnsafeMutableRawPointer?, isOnce: Bool,
    _ body: (_ context: UnsafeMutableRawPointer?) -> Void
  ) -> Bool {
    // Read before the call: the delegate may remove itself.
    let details = self.details
    let (lock, unlock) = (details?.pointee.lock, details?.pointee.unlock)
    Lock.checkNoneIsHeld()
    let strong = lock.map { $0(context) } ?? context
    let isDead = lock != nil && strong == nil
    // Locking may have removed it, or have taken so long that another thread has.
    let isRemovedNow = isDead || isOnce
    let isOurs = isRemovedNow ? Multicast(slot: owner).claim(token) : id == token
    let isCalled = isOurs && !isDead
    if isCalled { body(strong) }
    if !isDead { unlock?(strong) }  //~ unlock_forgotten
    return isCalled
  }
}
