import MulticastHeader
import Synchronization

extension Multicast {
  /// Removes the delegates whose context is dead.
  ///
  /// - Returns: how many there were, or the number of a status.
  func prune() -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    return withList(on: thread) { list, frame, asymmetric in
      list.prune(frame, asymmetric: asymmetric)
    }
  }
}

extension InvocationList {
  /// Looks at each delegate that has a lock, as an invocation does before a call.
  @inline(never)
  fileprivate func prune(_ frame: Frame, asymmetric: Bool) -> Int64 {
    // Acquire: pairs with `publish`, as in an invocation.
    let count = header.count.load(ordering: .acquiring)
    var removed: Int64 = 0
    var position: UInt32 = 0
    while position < count {
      let entry = self.entry(position)
      position &+= 1
      if entry.pointee.state.load(ordering: .relaxed) & State.weak == 0 { continue }
      let token = entry.pointee.token
      frame.setHazard(token)
      Fence.light(asymmetric: asymmetric)
      if !Self.isDead(entry) && Registration(index: token.index).pruneProtected(token) {
        removed &+= 1
      }
      frame.clearHazard()
      Fence.light(asymmetric: asymmetric)
      if Self.isDead(entry) { PendingRemovals.callDidReturn(token) }
    }
    return removed
  }
}

extension Registration {
  /// Removes a registration that this thread's hazard protects, if its context is dead.
  fileprivate func pruneProtected(_ token: Token) -> Bool {
    // Read before: the lock may remove the registration.
    let details = knownDetails
    let (context, unlock) = (details.pointee.context, details.pointee.unlock)
    Lock.checkNoneIsHeld()
    if let strong = details.pointee.lock.unsafelyUnwrapped(context) {
      unlock.unsafelyUnwrapped(strong)
      return false
    }
    return Multicast(slot: owner).claim(token)
  }
}
