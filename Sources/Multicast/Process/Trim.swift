import MulticastShims
import Synchronization

/// Returns memory to the system.
enum Trim {
  /// - Returns: the number of bytes of slots and thread records that were returned.
  static func run() -> Int {
    ThreadRecord.current?.storage.pointee.vacant.giveBack(to: .multicasts)
    Registration.collect()
    Lock.slabs.lock()
    // Slots with retired lists are kept, because the lists stay with their slot.
    Multicast.pool.collect {
      $0.assumingMemoryBound(to: Multicast.Storage.self)
        .pointee.firstRetired.load(ordering: .relaxed) == nil
    }
    Lifetime.pool.collect { _ in true }
    var bytes = 0
    // A caller's allocator may return memory that the system cannot take back.
    if Allocator.isLibc {
      bytes = Registration.directory.discardFree()
      bytes &+= Multicast.pool.directory.discardFree()
      bytes &+= Lifetime.pool.directory.discardFree()
      bytes &+= ThreadRegistry.discardIdle()
      // This is done under the lock. If another library has replaced malloc, the first call of
      // malloc_trim initializes glibc's own heap, and glibc does not expect two threads to do that
      // at once.
      shims_trim_malloc()
    }
    Lock.slabs.unlock()
    return bytes
  }
}
