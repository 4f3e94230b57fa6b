import MulticastHeader
import Synchronization

extension Broadcaster {
  /// The default broadcaster of the process; none until its first use.
  private static let processDefault = Atomic<Handle>(.none)

  /// - Returns: the handle of a broadcaster without names.
  static func create(
    _ given: UnsafePointer<multicast_broadcaster_options>? = nil
  ) throws(Status) -> Handle {
    var queue = Handle.none
    if let given {
      guard StructSize.isValid(given, smallest: StructSize.broadcasterOptions),
        given.pointee.flags == 0
      else { throw .invalidArgument }
      queue = Handle(given.pointee.queue.id)
      guard queue.isNone || Queue.destination(queue) != nil else { throw .invalidHandle }
    }
    return try pool.create(.broadcaster) {
      (storage: UnsafeMutablePointer<Storage>, _) in
      storage.pointee.queue.store(queue, ordering: .relaxed)
      storage.pointee.destroyer.store(.none, ordering: .relaxed)
      storage.pointee.isObserved.store(false, ordering: .relaxed)
    }
  }

  /// The default broadcaster, created at its first use.
  static func defaultHandle() throws(Status) -> Handle {
    let known = processDefault.load(ordering: .acquiring)  // order: default
    if !known.isNone { return known }
    Lock.names.lock()
    defer { Lock.names.unlock() }
    let made = processDefault.load(ordering: .relaxed)
    if !made.isNone { return made }
    let handle = try create()
    processDefault.store(handle, ordering: .releasing)  // order: default
    return handle
  }

  static func isDefault(_ handle: Handle) -> Bool {
    handle == processDefault.load(ordering: .acquiring)  // order: default
  }
}
