import MulticastShims
import Synchronization

extension Broadcaster {
  /// Destroys all its multicasts, and ends the handle.
  static func destroy(_ handle: Handle) throws(Status) -> Status {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    if isDefault(handle) { throw .state }
    return try broadcaster.destroy()
  }

  private func destroy() throws(Status) -> Status {
    let names = try withLock { () throws(Status) -> NameTable? in
      let table = self.table
      // The handle ends before the table is taken away. A look-up that finds the table of a later
      // occupant then finds that the handle is not its own.
      storage.pointee.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
      setTable(nil)
      return table
    }
    let isFenced = Epoch.fence()
    var status = isFenced ? Status.ok : .system
    names?.forEach { name in
      // If the caller has destroyed it, only the result of waiting counts.
      let outcome = Multicast(slotOf: name.multicast).unsafelyUnwrapped.destroy()
      status = status.combined(with: outcome.waiting)
    }
    // Without the fence it is unknown whether a look-up still uses the names.
    if !isFenced { return status }
    //~ names_freed_early
    while ThreadRegistry.all.contains(where: { $0.isInside(target) }) { shims_backoff() }
    names?.deallocate()
    Self.pool.reclaim(handle.index)
    return status
  }
}
