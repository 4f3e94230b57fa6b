import MulticastHeader
import MulticastShims
import Synchronization

/// Starts the library when it is first used.
enum Start {
  /// Changed under the slab lock. The release in `begin` pairs with the acquire in `ensure`, so
  /// that a thread that does not hold that lock sees the results of the start.
  private static let isDone = Atomic<Bool>(false)

  /// Replaces libc's allocator, which is possible only before anything has been allocated.
  static func replaceAllocator(by allocator: multicast_allocator) -> Status {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if isDone.load(ordering: .relaxed) { return .state }
    Allocator.replace(by: allocator)
    return .ok
  }

  /// Starts the library if it has not started yet, and returns whether it is now started. Called
  /// before any slab is added, that is, before anything can be invoked. No lock is held.
  @inline(__always)
  static func ensure() -> Bool { isDone.load(ordering: .acquiring) || begin() }  // order: started

  @inline(never)
  private static func begin() -> Bool {
    // Hold no lock during this call. If this thread held a lock of the library, it could wait for
    // libc's lock while a forking thread, which holds libc's lock, waits for the library's lock.
    // Neither could then continue.
    guard shims_watch_fork() else { return false }
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if isDone.load(ordering: .relaxed) { return true }
    CallerCode.noteProcess()
    RaceDetector.start()
    Fence.start()
    guard shims_exit_key_init() else { return false }
    isDone.store(true, ordering: .releasing)  // order: started
    return true
  }
}

extension ThreadRegistry {
  /// Creates the calling thread's record in advance.
  static func prepare() -> Status {
    guard Start.ensure(), let (thread, hasEntered) = enterIfNeeded() else { return .outOfMemory }
    leaveIfEnding(thread, hasEntered)
    return .ok
  }
}

extension SlotPool {
  /// Creates an object in a vacant slot. Starts the library if it has not started yet.
  @inline(__always)
  func create<Storage: ~Copyable>(
    _ kind: Handle.Kind,
    _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) throws(Status) -> Handle {
    guard Start.ensure() else { throw .outOfMemory }
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    let (index, slot) = try take()
    return Self.occupy(index, slot, kind, initialize)
  }

  /// Creates an object in a slot that the caller has taken from its pool.
  @inline(__always)
  static func occupy<Storage: ~Copyable>(
    _ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>, _ kind: Handle.Kind,
    _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) -> Handle {
    let handle = slot.pointee.id.load(ordering: .relaxed).next(kind, index: index)
    initialize(UnsafeMutableRawPointer(slot).assumingMemoryBound(to: Storage.self), handle)
    // Release: a thread that knows the handle, even by guessing it, finds the fields initialized.
    slot.pointee.id.store(handle, ordering: .releasing)  // order: occupant
    return handle
  }

  private func take() throws(Status) -> (UInt32, UnsafeMutablePointer<SlotHeader>) {
    checkInvariants()
    if let taken = takeVacant() { return taken }
    try grow()
    return takeVacant().unsafelyUnwrapped
  }
}
