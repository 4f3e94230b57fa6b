import Synchronization

extension Lifetime {
  /// - Parameter kind: `lifetime` for one of the caller's, `recipients` for one of the library's.
  /// - Returns: the handle of a lifetime without members.
  static func create(_ kind: Handle.Kind = .lifetime) throws(Status) -> Handle {
    try pool.create(kind) { (storage: UnsafeMutablePointer<Storage>, _) in
      storage.pointee.waiterCount.store(0, ordering: .relaxed)
      storage.pointee.process.store(Fork.generation, ordering: .relaxed)
      storage.pointee.role = kind == .lifetime ? .owned : .recipient
    }
  }
}
