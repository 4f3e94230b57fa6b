import CMulticast
import MulticastShims

extension Queue {
  /// Sleeps until a call waits.
  ///
  /// - Returns: how many wait.
  static func wait(_ handle: UInt64, timeout: UInt64) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    let (deadline, isBeyond) = shims_now_ns().addingReportingOverflow(timeout)
    let moment = isBeyond ? .max : deadline
    return try queue.withLock { () throws(Status) in
      while queue.storage.pointee.ring.count == 0 {
        if moment != .max && shims_now_ns() >= moment { throw .timeout }
        queue.sleep(until: moment)
        guard queue.isCurrent else { throw .invalidHandle }
      }
      return Int(queue.storage.pointee.ring.count)
    }
  }

  /// The descriptor that is readable while calls wait.
  ///
  /// - Returns: -1 where there is none.
  static func descriptor(_ handle: UInt64) -> Int32 {
    guard let queue = Queue(slotOf: handle) else { return -1 }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { return -1 }
    if queue.storage.pointee.descriptor < 0 {
      let descriptor = shims_event_open()
      if descriptor >= 0 && queue.storage.pointee.ring.count > 0 { shims_event_set(descriptor) }
      queue.storage.pointee.descriptor = descriptor
    }
    return queue.storage.pointee.descriptor
  }

  /// Copies the statistics of one moment.
  static func read(
    _ handle: UInt64, into out: UnsafeMutablePointer<multicast_queue_stats>?
  ) throws(Status) -> Status {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let out, StructSize.isValid(out, smallest: StructSize.queueStats) else {
      throw .invalidArgument
    }
    return try queue.withLock { () throws(Status) in
      let statistics = queue.storage.pointee.statistics
      out.pointee.pending = queue.storage.pointee.ring.count
      out.pointee.queued = statistics.queued
      out.pointee.delivered = statistics.delivered
      out.pointee.refused = statistics.refused
      out.pointee.dropped = statistics.dropped
      out.pointee.retracted = statistics.retracted
      out.pointee.coalesced = statistics.coalesced
      out.pointee.highest = statistics.highest
      return .ok
    }
  }
}
