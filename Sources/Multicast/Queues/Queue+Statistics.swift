import MulticastHeader

extension Queue {
  /// Copies the statistics of one moment.
  static func read(
    _ handle: Handle, into out: UnsafeMutablePointer<multicast_queue_stats>?
  ) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let out else { throw .invalidArgument }
    return try queue.withLock { () throws(Status) in
      guard StructSize.prepareOutput(out, smallest: StructSize.queueStats) else {
        throw .invalidArgument
      }
      out.pointee.flags = 0
      let statistics = queue.state.statistics
      // Every call that is gone otherwise was made, or is being made.
      let pending = queue.state.ring.count
      let gone =
        pending &+ statistics.dropped &+ statistics.retracted &+ statistics.coalesced
      out.pointee.pending = pending
      out.pointee.queued = queue.queued
      out.pointee.delivered = queue.queued &- gone
      out.pointee.refused = statistics.refused
      out.pointee.dropped = statistics.dropped
      out.pointee.retracted = statistics.retracted
      out.pointee.coalesced = statistics.coalesced
      out.pointee.highest = statistics.highest
      return .ok
    }
  }
}
