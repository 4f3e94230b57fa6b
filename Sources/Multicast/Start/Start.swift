import MulticastHeader
import MulticastShims
import Synchronization

/// The start of the library: its first use.
enum Start {
  /// Changed under the slab lock. Release and acquire: a thread without that lock sees the results
  /// of the start.
  private static let isDone = Atomic<Bool>(false)

  /// Replaces libc's allocator, before anything is allocated.
  static func replaceAllocator(by allocator: multicast_allocator) -> Status {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if isDone.load(ordering: .relaxed) { return .state }
    Allocator.replace(by: allocator)
    return .ok
  }

  /// Called before the first slab is added: nothing can be invoked before. No lock is held.
  @inline(__always)
  static func ensure() -> Bool { isDone.load(ordering: .acquiring) || begin() }  // order: started

  @inline(never)
  private static func begin() -> Bool {
    // Under no lock: while this thread waits for libc's lock, a thread that forks may wait for
    // ours.
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
  /// Gives the calling thread its record before it needs it.
  static func prepare() -> Status {
    guard Start.ensure(), let (thread, hasEntered) = enterIfNeeded() else { return .outOfMemory }
    leaveIfEnding(thread, hasEntered)
    return .ok
  }
}
