import MulticastHeader
import MulticastShims
import Synchronization

/// The slot of a broadcaster, which maps names to multicasts.
///
/// Names are added under the names' lock. A lookup takes no lock, but publishes a frame, and
/// `destroy` waits until no frame has the broadcaster as its target. This wait is short, because a
/// lookup calls none of the caller's code.
struct Broadcaster {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// Nil until the first name exists.
    let table: Atomic<UnsafeMutablePointer<NameTable.Header>?>
    let queue: Atomic<Handle>
    /// The thread that is destroying the broadcaster, or `.none`.
    let destroyer: Atomic<ThreadIdentity>
    /// The handle of the transport, or `.none`.
    let transport: Atomic<Handle>
    /// Whether the broadcaster has or has had a transport.
    let isObserved: Atomic<Bool>
    /// The additional steps of a notification (see `Extras`).
    let extras: Atomic<UInt64>
  }

  static var pool: SlotPool { SlotPool(.broadcasters, stride: MemoryLayout<Storage>.stride) }

  let handle: Handle
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at a handle's index. The slot may have been reused for another broadcaster (see
  /// `isCurrent`).
  @inline(__always) init?(slotOf handle: Handle) {
    guard let slot = Self.pool.slot(of: handle, .broadcaster) else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Whether the slot still contains this broadcaster. Acquire: pairs with the release in `create`.
  var isCurrent: Bool {
    storage.pointee.header.id.load(ordering: .acquiring) == handle  // order: occupant
  }

  /// The target of a frame that looks up a name in this broadcaster.
  var target: Target { .lookUp(storage) }

  /// The current names. Acquire: pairs with the release in `setTable`.
  var table: NameTable? {
    storage.pointee.table.load(ordering: .acquiring).map { NameTable($0) }  // order: table
  }

  /// The names of the broadcaster in an allocated slot. The caller holds the names' lock.
  static func table(at index: UInt32) -> NameTable? {
    let slot = pool.directory.slot(index).unsafelyUnwrapped
    let storage = slot.assumingMemoryBound(to: Storage.self)
    return storage.pointee.table.load(ordering: .acquiring).map { NameTable($0) }  // order: table
  }

  /// The queue for observers registered without a queue. Relaxed is enough: if the handle is stale,
  /// this may be the queue of a later broadcaster in the slot, but then the registration fails, and
  /// the queue is not used.
  var queue: Handle { storage.pointee.queue.load(ordering: .relaxed) }

  func setTable(_ table: NameTable?) {
    storage.pointee.table.store(table?.header, ordering: .releasing)  // order: table
  }
}

extension Broadcaster {
  /// The default broadcaster of the process, or `.none` until it is first used.
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
      storage.pointee.extras.store(0, ordering: .relaxed)
    }
  }

  /// The default broadcaster, which is created on first use.
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

extension Broadcaster {
  /// Destroys all of the broadcaster's multicasts, and ends the handle.
  ///
  /// If another thread is already destroying the broadcaster, waits for that thread, and then
  /// fails.
  static func destroy(
    _ handle: Handle, _ timeout: Timeout = .untilExit
  ) throws(Status) -> Status {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    if isDefault(handle) { throw .state }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      // Without memory for a record, this thread has no identity that others could wait for.
      return try broadcaster.destroy(by: .none, timeout)
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    return try broadcaster.destroy(by: thread.identity, timeout)
  }

  private func destroy(
    by thread: ThreadIdentity, _ timeout: Timeout
  ) throws(Status) -> Status {
    let names: NameTable?
    let transport: Handle
    do throws(Status) {
      (names, transport) = try withLock { () throws(Status) -> (NameTable?, Handle) in
        let table = self.table
        storage.pointee.destroyer.store(thread, ordering: .relaxed)
        // End the handle before removing the table. So a lookup that finds a later broadcaster's
        // table in the slot also finds that its own handle is stale.
        storage.pointee.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
        setTable(nil)
        return (table, exchangeTransport(for: .none))
      }
    } catch {
      return waitForDestroyer(timeout)
    }
    let isFenced = Fence.heavy()
    // Detach the transport first, so that it is not notified while the names are being removed.
    var status = Transport.detach(transport, timeout).combined(with: isFenced ? .ok : .system)
    var index = 0
    while let name = names?.next(&index) {
      // A caller may have destroyed this multicast already, so use only the result of the wait.
      let multicast = Multicast(slotOf: name.multicast).unsafelyUnwrapped
      status = status.combined(with: multicast.destroyOutlined(timeout).waiting)
      multicast.giveBackKept()  //~ kept_slot_lost
    }
    if isFenced {
      //~ names_freed_early
      while ThreadRegistry.all.contains(where: { $0.isInside(target) }) { shims_backoff() }
      names?.deallocate()
    }
    Waits.wake { storage.pointee.destroyer.store(.none, ordering: .relaxed) }
    // Keep the slot if the fence has failed, because a lookup may still be using the names.
    if isFenced { Self.pool.reclaim(handle.index) }
    return status
  }

  /// Called in the child of a fork, where no other thread can be destroying a broadcaster.
  static func forgetDestroyersInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let storage = slot.assumingMemoryBound(to: Storage.self)
      if storage.pointee.destroyer.load(ordering: .relaxed) == own { return }
      storage.pointee.destroyer.store(.none, ordering: .relaxed)
    }
  }

  /// Waits until another thread has destroyed the broadcaster, unless waiting would close a cycle.
  private func waitForDestroyer(_ timeout: Timeout) -> Status {
    let destroyer = storage.pointee.destroyer.address
    let own = ThreadRecord.current?.identity ?? .none
    let isOver = {
      storage.pointee.header.id.load(ordering: .relaxed) != handle.changed(to: .vacant)
        || destroyer.pointee.load(ordering: .relaxed).isNone
        // Do not wait if this thread itself is destroying the broadcaster and a release function
        // has called `destroy` again.
        || destroyer.pointee.load(ordering: .relaxed) == own
    }
    return Waits.sleep(for: .thread(destroyer), timeout, until: isOver) == .timeout
      ? .timeout : .invalidHandle
  }
}
