/// Taking delegates out of the list. The stripe's lock is held.
extension Multicast {
  /// Unlinks all that are selected; from the last, so that their releases run from the first.
  func unlinkAll(_ selection: Selection, _ cleanup: inout Cleanup) -> Int {
    cleanup.isAlone = isAlone(cleanup.thread)
    guard let list else { return 0 }
    var removed = 0
    var position = list.count
    while position > 0 {
      position &-= 1
      let entry = list.entry(position)
      if InvocationList.isDead(entry) || !selection.includes(entry) { continue }
      unlink(position, of: list, &cleanup)
      removed &+= 1
    }
    return removed
  }

  /// Takes a delegate out: no call of it begins in an invocation that sees this.
  func unlink(_ position: UInt32, of list: InvocationList, _ cleanup: inout Cleanup) {
    let token = list.entry(position).pointee.token
    mark(position, of: list, set: InvocationList.State.dead)
    list.header.pointee.live &-= 1
    let registration = Registration(index: Handle.index(of: token))
    registration.retire()
    leave(registration, token, &cleanup)
  }

  /// Takes a delegate out where no call of it can be running and nothing else depends on it, as is
  /// most often so.
  ///
  /// - Returns: false where there is more to do; nothing has happened then.
  func drop(_ registration: Registration, _ cleanup: inout Cleanup) -> Bool {
    guard registration.storage.pointee.extras == nil, storage.pointee.retired == nil,
      isAlone(cleanup.thread), !(cleanup.thread?.isInside ?? false), let list
    else { return false }
    let position = registration.storage.pointee.link
    list.mark(position, set: InvocationList.State.dead)
    list.header.pointee.live &-= 1
    registration.giveBack(to: stripe)
    if list.isUntidy || position == list.count &- 1 { tidy(&cleanup) }
    checkInvariants()
    return true
  }

  /// Gives a registration back at once where it cannot be in a call, otherwise leaves that for when
  /// the lock is let go of.
  func leave(_ registration: Registration, _ token: UInt64, _ cleanup: inout Cleanup) {
    let isAlone = self.isAlone(cleanup.thread)
    var isCalled = cleanup.thread?.isCalling(token) ?? false
    if let extras = registration.storage.pointee.extras, let queue = extras.pointee.queue {
      Delivery.retract.unsafelyUnwrapped(queue, extras)
      // Whoever runs the queue is not known as an invoker. No fence is needed to see its frame.
      isCalled = ThreadRegistry.all.contains { $0.isCalling(token) }
    }
    if !isAlone || isCalled {
      if !isAlone { cleanup.isAlone = false }
      return cleanup.leaving.push(registration)
    }
    if let extras = registration.giveBack(to: stripe) { cleanup.release(extras) }
  }

  /// Shrinks the list where too little of it is live. Failing to is harmless.
  func tidy(_ cleanup: inout Cleanup) {
    guard let list else { return }
    let isQuiet = self.isQuiet(cleanup.thread)
    if isQuiet { list.dropDeadTail() }
    guard list.isUntidy else { return }
    if isQuiet && !list.isSparse { return list.compactInPlace() }
    let smaller = InvocationList.allocate(
      capacity: InvocationList.capacity(for: list.live &* 2), owner: handle)
    if let smaller {
      _ = list.copyLive(to: smaller)
      smaller.refreshLastPriority()
      replaceList(by: smaller, &cleanup)
    } else if isQuiet {
      list.compactInPlace()
    }
  }
}
