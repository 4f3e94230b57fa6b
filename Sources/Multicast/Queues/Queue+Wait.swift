extension Queue {
  /// Sleeps until a call waits.
  ///
  /// - Returns: how many wait.
  static func wait(_ handle: Handle, _ timeout: Timeout) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    return try queue.withLock { () throws(Status) in
      while queue.state.ring.count == 0 {
        if timeout.isOver { throw .timeout }
        queue.state.ring.close()
        queue.sleep(until: timeout.deadline)
        guard queue.isCurrent else { throw .invalidHandle }
      }
      return Int(queue.state.ring.count)
    }
  }
}
