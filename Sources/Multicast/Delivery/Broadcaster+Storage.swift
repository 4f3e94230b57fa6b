import CMulticast
import MulticastShims
import Synchronization

/// A broadcaster's slot: multicasts by name.
///
/// Names are added under the lock of names. Who looks one up takes no lock but publishes a frame,
/// so that the tables are not freed meanwhile; as for invocations, who destroys the broadcaster
/// calls the heavy fence and then waits until no frame names it. That wait is short: a look-up
/// calls nobody.
struct Broadcaster {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// Nil while there is no name.
    let table: Atomic<UnsafeMutablePointer<NameTable.Header>?>
    /// The handle of the queue for observers that name none.
    let queue: Atomic<UInt64>
  }

  nonisolated(unsafe) static var pool = SlotPool()  // guarded by the slab lock

  @inline(__always) static var directory: SlabDirectory {
    SlabDirectory(
      shims_get_broadcaster_directory().unsafelyUnwrapped, stride: MemoryLayout<Storage>.stride)
  }

  let handle: UInt64
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whoever lives there.
  @inline(__always) init?(slotOf handle: UInt64) {
    guard Handle.kind(of: handle) == Handle.Kind.broadcaster,
      let slot = Self.directory.slot(Handle.index(of: handle))
    else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Acquire: pairs with the release in `create`.
  @inline(__always) var isCurrent: Bool {
    storage.pointee.header.id.load(ordering: .acquiring) == handle
  }

  /// What frames name a look-up by.
  @inline(__always) var address: UInt { UInt(bitPattern: storage) | 2 }

  /// The current names. Acquire: pairs with the release of `setTable`.
  @inline(__always) var table: NameTable? {
    storage.pointee.table.load(ordering: .acquiring).map { NameTable($0) }
  }

  /// Relaxed: a stale handle may find the queue of a later inhabitant, but registers nobody.
  var queue: UInt64 { storage.pointee.queue.load(ordering: .relaxed) }

  func setTable(_ table: NameTable?) {
    storage.pointee.table.store(table?.header, ordering: .releasing)
  }
}
