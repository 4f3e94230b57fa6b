import Synchronization

extension Multicast {
  /// - Returns: the handle of an empty multicast.
  @_optimize(speed)
  static func create() throws(Status) -> Handle {
    if let thread = ThreadRecord.current,
      let (index, slot) = thread.storage.pointee.vacant.take(from: pool)
    {
      return SlotPool.occupy(index, slot, .multicast, initialize)
    }
    return try pool.create(.multicast, initialize)
  }

  @inline(__always)
  private static func initialize(
    _ storage: UnsafeMutablePointer<Storage>, _ handle: Handle
  ) {
    storage.pointee.invoker.store(handle.rawValue, ordering: .relaxed)  //~ invoker_not_reset
  }
}
