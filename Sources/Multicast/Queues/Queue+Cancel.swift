import MulticastHeader

extension Queue {
  /// Cancels the waiting calls to a registration that is no longer live.
  ///
  /// Afterwards the head of the ring is closed. The removing thread then checks the frames. It
  /// finds the hazard of each call that has been taken out, and no other call begins (see `run`).
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
    // Wake the threads waiting for room. Either there is room now, or a thread may be waiting to
    // queue a call to the removed delegate.
    let isRoomAwaited = state.isRoomAwaited
    lock.unlock()
    if isRoomAwaited { wakeAllForRoom() }
  }
}

extension Queue {
  /// Drops all waiting calls.
  ///
  /// - Returns: the number of dropped calls.
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
