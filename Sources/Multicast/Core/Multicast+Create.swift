import MulticastShims
import Synchronization

extension Multicast {
  nonisolated(unsafe) private static var pool = SlotPool()  // guarded by the slab lock

  /// - Returns: the handle of an empty multicast.
  static func create() throws(Status) -> UInt64 {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    guard Process.start() else { throw .outOfMemory }
    let (slot, handle) = try pool.take(from: directory, kind: Handle.Kind.multicast)
    let storage = slot.assumingMemoryBound(to: Storage.self)
    storage.pointee.invoker.store(handle, ordering: .relaxed)
    // Release: who finds the handle here, be it by guessing it, finds its invoker reset.
    storage.pointee.header.id.store(handle, ordering: .releasing)
    return handle
  }

  /// Removes all delegates and ends the handle.
  ///
  /// - Returns: `invalidHandle` where another thread has done so, or is just doing it; after
  ///   waiting.
  func destroy() -> Status {
    let (status, settled) = destroyAndSettle()
    return settled == .system ? .system : status
  }

  /// The same, but where somebody else has destroyed it: what came of the waiting.
  func destroyOrSettle() -> Status {
    let (status, settled) = destroyAndSettle()
    return status == .invalidHandle ? settled : status
  }

  private func destroyAndSettle() -> (status: Status, settled: Status) {
    var cleanup = Cleanup()
    do throws(Status) {
      try withLock { () throws(Status) in
        _ = unlinkAll(.all, &cleanup)
        // The handle ends before the list goes: an invocation that finds the list of a later
        // inhabitant finds, after it, that the handle is not its own.
        storage.pointee.header.id.store(
          Handle.change(handle, to: Handle.Kind.vacant), ordering: .relaxed)
        replaceList(by: nil, &cleanup)
        checkInvariants()
        Lock.slabs.lock()
        Self.pool.giveBack(Handle.index(of: handle), to: Self.directory)
        Lock.slabs.unlock()
      }
    } catch {
      // Another thread may be destroying it.
      cleanup.isAlone = false
      return (error, settle(.all, after: cleanup))
    }
    return (finish(cleanup, settling: .all), .ok)
  }
}
