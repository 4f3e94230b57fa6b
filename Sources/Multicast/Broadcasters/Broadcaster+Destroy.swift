import MulticastShims
import Synchronization

extension Broadcaster {
  /// Destroys all its multicasts, and ends the handle.
  ///
  /// If another thread is destroying the broadcaster, this waits, too, and then fails.
  static func destroy(
    _ handle: Handle, _ timeout: Timeout = .untilExit
  ) throws(Status) -> Status {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    if isDefault(handle) { throw .state }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      // A thread without a record, for lack of memory, is not waited for.
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
        // The handle ends before the table is taken away. A look-up that finds the table of a later
        // occupant then finds that the handle is not its own.
        storage.pointee.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
        setTable(nil)
        return (table, exchangeTransport(for: .none))
      }
    } catch {
      return waitForDestroyer(timeout)
    }
    let isFenced = Fence.heavy()
    // First: the transport is not notified of the names' ends.
    var status = Transport.detach(transport, timeout).combined(with: isFenced ? .ok : .system)
    var index = 0
    while let name = names?.next(&index) {
      // If the caller has destroyed the multicast, only the result of waiting counts.
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
    // Without the fence it is unknown whether a look-up still uses the names.
    if isFenced { Self.pool.reclaim(handle.index) }
    return status
  }

  /// The child of a fork has this thread only: no other thread destroys a broadcaster.
  static func forgetDestroyersInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let storage = slot.assumingMemoryBound(to: Storage.self)
      if storage.pointee.destroyer.load(ordering: .relaxed) == own { return }
      storage.pointee.destroyer.store(.none, ordering: .relaxed)
    }
  }

  /// Waits until another thread has destroyed the broadcaster, unless the wait would close a cycle.
  private func waitForDestroyer(_ timeout: Timeout) -> Status {
    let destroyer = storage.pointee.destroyer.address
    let own = ThreadRecord.current?.identity ?? .none
    let isOver = {
      storage.pointee.header.id.load(ordering: .relaxed) != handle.changed(to: .vacant)
        || destroyer.pointee.load(ordering: .relaxed).isNone
        // This thread is destroying it, inside a release function.
        || destroyer.pointee.load(ordering: .relaxed) == own
    }
    return Waits.sleep(for: .thread(destroyer), timeout, until: isOver) == .timeout
      ? .timeout : .invalidHandle
  }
}
