extension Registration {
  /// Calls a delegate that this thread's hazard protects and that was found live. The context is
  /// locked if it counts references. A delegate that is called once is removed before.
  ///
  /// - Parameter state: That of its entry, or the bits of it that matter here.
  /// - Returns: whether it was called. It is not if its context is dead, or if it was removed
  ///   meanwhile.
  func callProtected(
    _ token: Token, context: UnsafeMutableRawPointer?, _ state: UInt32,
    _ body: (_ context: UnsafeMutableRawPointer?) -> Void
  ) -> Bool {
    // Read before the call: the delegate may remove itself.
    let isShared = state & InvocationList.State.shared != 0
    let own = ContextLock(self, isShared: isShared)
    // If it is live, the functions are those of its multicast.
    if isShared && id != token { return false }
    Lock.checkNoneIsHeld()
    let strong = own.lock.map { $0(context) } ?? context
    let isDead = own.lock != nil && strong == nil
    // Locking may have removed it, or have taken so long that another thread has.
    let isRemovedNow = isDead || state & InvocationList.State.once != 0
    let isOurs = isRemovedNow ? Multicast.claim(token) : id == token
    let isCalled = isOurs && !isDead
    if isCalled { body(strong) }
    if !isDead { own.unlock?(strong) }  //~ unlock_forgotten
    return isCalled
  }
}
