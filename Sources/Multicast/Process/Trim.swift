import MulticastShims
import Synchronization

/// Giving memory back to the system.
enum Trim {
  /// - Returns: how many bytes of slots and records of threads.
  static func run() -> Int {
    ThreadRecord.current?.storage.pointee.vacant.giveBack(to: .multicasts)
    Registration.collect()
    Lock.slabs.lock()
    // Retired lists stay with their slot.
    Multicast.pool.collect {
      $0.assumingMemoryBound(to: Multicast.Storage.self)
        .pointee.firstRetired.load(ordering: .relaxed) == nil
    }
    Lifetime.pool.collect { _ in true }
    var bytes = 0
    // A caller's allocator may have memory that the system cannot take.
    if Allocator.isLibc {
      bytes = Registration.directory.discardFree()
      bytes &+= Multicast.pool.directory.discardFree()
      bytes &+= Lifetime.pool.directory.discardFree()
      bytes &+= ThreadRegistry.discardIdle()
      // Under the lock: where another library has replaced malloc, the first call of malloc_trim
      // initializes glibc's own heap, which glibc does not expect two threads to do at once.
      shims_trim_malloc()
    }
    Lock.slabs.unlock()
    return bytes
  }
}
