extension Queue {
  /// Drops the calls that wait.
  ///
  /// - Returns: how many there were.
  static func clear(_ handle: Handle) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    var hasBlocked = false
    var released = ReleasedPayloads()
    let dropped = try queue.withLock { () throws(Status) in
      let before = queue.state.ring.count
      let dropped = queue.state.ring.takeAll(&released)
      queue.state.statistics.dropped &+= dropped
      queue.updateDescriptor(from: before)
      queue.checkInvariants()
      hasBlocked = queue.state.blockedCount > 0
      return Int(dropped)
    }
    if hasBlocked { Waits.wake() }
    released.finish()
    return dropped
  }
}
