import MulticastShims
import Synchronization

/// Returns memory to the system.
enum Trim {
  /// - Returns: the number of bytes that were returned to the system from slots and thread records.
  static func run() -> Int {
    ThreadRecord.current?.storage.pointee.vacant.giveBack(to: .multicasts)
    Registration.collect()
    Lock.slabs.lock()
    // Keep slots that have retired lists, because a retired list stays with its slot.
    Multicast.pool.collect {
      $0.assumingMemoryBound(to: Multicast.Storage.self)
        .pointee.firstRetired.load(ordering: .relaxed) == nil
    }
    Lifetime.pool.collect { _ in true }
    var bytes = 0
    // A caller's allocator may provide memory that cannot be returned to the system.
    if Allocator.isLibc {
      bytes = Registration.directory.discardFree()
      bytes &+= Multicast.pool.directory.discardFree()
      bytes &+= Lifetime.pool.directory.discardFree()
      bytes &+= ThreadRegistry.discardIdle()
      // Call malloc_trim under the lock. If another library has replaced malloc, the first call to
      // malloc_trim initializes glibc's own heap, and glibc does not expect two threads to do that
      // at the same time.
      shims_trim_malloc()
    }
    Lock.slabs.unlock()
    return bytes
  }
}
