import Synchronization

extension Multicast {
  /// - Returns: the handle of an empty multicast without policies.
  @_optimize(speed)
  static func create() throws(Status) -> Handle { try create(.multicast, initialize) }

  @inline(__always)
  static func create(
    _ kind: Handle.Kind, _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) throws(Status) -> Handle {
    if let thread = ThreadRecord.current,
      let (index, slot) = thread.storage.pointee.vacant.take(from: pool)
    {
      return SlotPool.occupy(index, slot, kind, initialize)
    }
    return try pool.create(kind, initialize)
  }

  @inline(__always)
  static func initialize(
    _ storage: UnsafeMutablePointer<Storage>, _ handle: Handle
  ) {
    storage.pointee.invoker.store(handle.rawValue, ordering: .relaxed)  //~ invoker_not_reset
  }
}
