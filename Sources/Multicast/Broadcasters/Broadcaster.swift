import MulticastHeader
import MulticastShims
import Synchronization

/// A broadcaster's slot: multicasts by name.
///
/// Names are added under the names' lock. A look-up takes no lock. It publishes a hazard frame, so
/// that the tables are not freed meanwhile. As for invocations, a thread that destroys the
/// broadcaster makes the heavy fence, and then waits until no frame has it as its target. That wait
/// is short: a look-up calls no code of the caller's.
struct Broadcaster {
  struct Storage: ~Copyable {
    var header: SlotHeader
    /// Nil as long as there is no name.
    let table: Atomic<UnsafeMutablePointer<NameTable.Header>?>
    /// The queue of observers whose options have none.
    let queue: Atomic<Handle>
    /// The thread that is destroying the broadcaster, or none.
    let destroyer: Atomic<ThreadIdentity>
    /// The handle of its transport, or none.
    let transport: Atomic<Handle>
    /// Whether the broadcaster has, or had, a transport.
    let isObserved: Atomic<Bool>
  }

  static var pool: SlotPool { SlotPool(.broadcasters, stride: MemoryLayout<Storage>.stride) }

  let handle: Handle
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whatever its occupant: see `isCurrent`.
  @inline(__always) init?(slotOf handle: Handle) {
    guard let slot = Self.pool.slot(of: handle, .broadcaster) else { return nil }
    self.handle = handle
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Acquire: pairs with the release in `create`.
  var isCurrent: Bool {
    storage.pointee.header.id.load(ordering: .acquiring) == handle  // order: occupant
  }

  /// The target of a frame that looks up a name here.
  var target: Target { .lookUp(storage) }

  /// The current names. Acquire: pairs with the release of `setTable`.
  var table: NameTable? {
    storage.pointee.table.load(ordering: .acquiring).map { NameTable($0) }  // order: table
  }

  /// The names of the occupant of a slot that has been allocated. The names' lock is held.
  static func table(at index: UInt32) -> NameTable? {
    let slot = pool.directory.slot(index).unsafelyUnwrapped
    let storage = slot.assumingMemoryBound(to: Storage.self)
    return storage.pointee.table.load(ordering: .acquiring).map { NameTable($0) }  // order: table
  }

  /// Relaxed: a stale handle may find the queue of a later occupant, but registers no observer.
  var queue: Handle { storage.pointee.queue.load(ordering: .relaxed) }

  func setTable(_ table: NameTable?) {
    storage.pointee.table.store(table?.header, ordering: .releasing)  // order: table
  }
}
