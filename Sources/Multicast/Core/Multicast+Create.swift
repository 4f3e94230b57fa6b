import MulticastShims
import Synchronization

extension Multicast {
  // Guarded by the slab lock.
  nonisolated(unsafe) private static var firstVacant: UInt32 = 0  // index + 1
  nonisolated(unsafe) private static var nextUnused: UInt32 = 0
  nonisolated(unsafe) private static var endUnused: UInt32 = 0
  nonisolated(unsafe) private static var slabCount = 0

  private static let smallestSlabShift = 6

  /// - Returns: the handle of an empty multicast.
  static func create() throws(Status) -> UInt64 {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    let index: UInt32
    if firstVacant != 0 {
      index = firstVacant &- 1
    } else {
      if nextUnused == endUnused { try grow() }
      index = nextUnused
      nextUnused &+= 1
    }
    let slot = directory.slot(index).unsafelyUnwrapped
    let storage = slot.assumingMemoryBound(to: Storage.self)
    if firstVacant != 0 { firstVacant = storage.pointee.nextVacant }
    let handle = Handle.next(
      after: storage.pointee.id.load(ordering: .relaxed), kind: Handle.Kind.multicast,
      index: index)
    storage.pointee.invoker.store(Handle.generation(of: handle), ordering: .relaxed)
    // Release: who finds the handle here, be it by guessing it, finds its invoker reset.
    storage.pointee.id.store(handle, ordering: .releasing)
    return handle
  }

  private static func grow() throws(Status) {
    guard Process.start() else { throw .outOfMemory }
    guard slabCount < SlabDirectory.capacity else { throw .limit }
    let shift = min(smallestSlabShift &+ slabCount, Int(SlabDirectory.placeBits))
    guard directory.publish(slab: slabCount, shift: shift) else { throw .outOfMemory }
    nextUnused = UInt32(truncatingIfNeeded: slabCount) << SlabDirectory.placeBits
    endUnused = nextUnused &+ (1 << UInt32(shift))
    slabCount &+= 1
  }

  /// Removes all delegates and ends the handle.
  func destroy() -> Status {
    var cleanup = Cleanup()
    do throws(Status) {
      try withLock { () throws(Status) in
        _ = unlinkAll(.all, &cleanup)
        // The handle ends before the list goes: an invocation that finds the list of a later
        // inhabitant finds, after it, that the handle is not its own.
        storage.pointee.id.store(
          Handle.change(handle, to: Handle.Kind.vacant), ordering: .relaxed)
        replaceList(by: nil, &cleanup)
        giveBack()
      }
    } catch {
      return error
    }
    return finish(cleanup, settling: .all)
  }

  private func giveBack() {
    if Handle.isExhausted(handle) { return }
    Lock.slabs.lock()
    storage.pointee.nextVacant = Self.firstVacant
    Self.firstVacant = Handle.index(of: handle) &+ 1
    Lock.slabs.unlock()
  }
}
