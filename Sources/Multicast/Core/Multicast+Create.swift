import Synchronization

extension Multicast {
  /// - Returns: the handle of an empty multicast.
  static func create() throws(Status) -> Handle {
    try pool.create(.multicast) {
      (storage: UnsafeMutablePointer<Storage>, handle) throws(Status) in
      storage.pointee.invoker.store(handle.rawValue, ordering: .relaxed)  //~ invoker_not_reset
    }
  }
}
