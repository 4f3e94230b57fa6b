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
    released.finish()
    return dropped
  }
}
