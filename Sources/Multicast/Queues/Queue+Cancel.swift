import MulticastHeader

extension Queue {
  /// Cancels the calls of a registration that is not live any more.
  ///
  /// Afterwards the head of the ring is closed. So a remover that looks at the frames then finds
  /// the hazard of a call that was dequeued earlier, and no other call begins: see `run`.
  func cancel(_ details: RegistrationDetails.Address, _ released: inout ReleasedPayloads) {
    lock.lock()
    if delivers(details) {  //~ calls_not_cancelled
      state.ring.close()
      let before = state.ring.count
      let taken = state.ring.takeAll(of: details, &released)
      state.statistics.cancelled &+= taken
      if taken > 0 { updateDescriptor(from: before) }
      checkInvariants()
    }
    // There is room now, or the delegate of the call that waits for room is gone.
    let isRoomAwaited = state.isRoomAwaited
    lock.unlock()
    if isRoomAwaited { wakeAllForRoom() }
  }
}

extension Queue {
  /// Drops the calls that wait.
  ///
  /// - Returns: how many there were.
  static func clear(_ handle: Handle) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    var isRoomAwaited = false
    var released = ReleasedPayloads()
    let dropped = try queue.withLock { () throws(Status) in
      queue.state.ring.close()
      let before = queue.state.ring.count
      let dropped = queue.state.ring.takeAll(&released)
      queue.state.statistics.dropped &+= dropped
      queue.updateDescriptor(from: before)
      queue.checkInvariants()
      isRoomAwaited = queue.state.isRoomAwaited
      return Int(dropped)
    }
    if isRoomAwaited { queue.wakeAllForRoom() }
    released.cleanUp()
    return dropped
  }
}
