import CMulticast
import MulticastShims
import Synchronization

extension Broadcaster {
  /// The handle of the one of the process; 0 until somebody asks for it.
  private static let standard = Atomic<UInt64>(0)

  /// - Returns: the handle of a broadcaster without names.
  static func create(
    _ given: UnsafePointer<multicast_broadcaster_options>? = nil
  ) throws(Status) -> UInt64 {
    var queue: UInt64 = 0
    if let given {
      guard StructSize.isValid(given, smallest: StructSize.broadcasterOptions),
        given.pointee.flags == 0
      else { throw .invalidArgument }
      queue = given.pointee.queue.id
      guard queue == 0 || Queue.destination(queue) != nil else { throw .invalidHandle }
    }
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    guard Process.start() else { throw .outOfMemory }
    let (slot, handle) = try pool.take(from: directory, kind: Handle.Kind.broadcaster)
    let storage = slot.assumingMemoryBound(to: Storage.self)
    storage.pointee.queue.store(queue, ordering: .relaxed)
    storage.pointee.header.id.store(handle, ordering: .releasing)
    return handle
  }

  /// The one of the process, which is made at its first use.
  static func standardHandle() throws(Status) -> UInt64 {
    let known = standard.load(ordering: .acquiring)
    if known != 0 { return known }
    Lock.names.lock()
    defer { Lock.names.unlock() }
    let made = standard.load(ordering: .relaxed)
    if made != 0 { return made }
    let handle = try create()
    standard.store(handle, ordering: .releasing)
    return handle
  }

  /// Destroys all its multicasts and ends the handle.
  static func destroy(_ handle: UInt64) throws(Status) -> Status {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    if handle == standard.load(ordering: .acquiring) { throw .state }
    return try broadcaster.destroy()
  }

  private func destroy() throws(Status) -> Status {
    let names = try withLock { () throws(Status) -> NameTable? in
      let table = self.table
      // The handle ends before the table goes: who finds that of a later inhabitant finds, after
      // it, that the handle is not its own.
      storage.pointee.header.id.store(
        Handle.change(handle, to: Handle.Kind.vacant), ordering: .relaxed)
      setTable(nil)
      return table
    }
    let isFenced = Ticket.fence()
    var status = isFenced ? Status.ok : .system
    names?.forEach { name in
      let outcome = Multicast(slotOf: name.multicast).unsafelyUnwrapped.destroyOrSettle()
      if outcome == .system || (outcome == .pending && status == .ok) { status = outcome }
    }
    // Nobody knows who may still be looking names up.
    if !isFenced { return status }
    while ThreadRegistry.all.contains(where: { $0.isInvoking(address) }) { shims_doze() }
    names?.deallocate()
    Lock.slabs.lock()
    Self.pool.giveBack(Handle.index(of: handle), to: Self.directory)
    Lock.slabs.unlock()
    return status
  }
}
