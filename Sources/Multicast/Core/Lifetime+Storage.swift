import MulticastShims
import Synchronization

/// What registrations can be made to end with, wherever they are.
///
/// A registration that was added under a lifetime is its member until it is given back: so also
/// while it is removed but may be in a call. Members are linked through their extras.
struct Lifetime {
  struct Storage: ~Copyable {
    /// The handle while it lasts; then of kind `leaving` until the last member is gone.
    var header: SlotHeader

    // The rest is guarded by the lifetime's lock. Lists hold indices + 1 of registrations.

    /// Members that are live, or about to be.
    var live: UInt32
    /// Members that are removed and may be in a call.
    var leaving: UInt32
    var liveCount: UInt32
    /// How many threads are ending it; the slot stays theirs.
    var enders: UInt32
  }

  nonisolated(unsafe) private static var pool = SlotPool()  // guarded by the slab lock

  @inline(__always) private static var directory: SlabDirectory {
    SlabDirectory(
      shims_get_lifetime_directory().unsafelyUnwrapped, stride: MemoryLayout<Storage>.stride)
  }

  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whoever lives there; nil where it leads nowhere.
  init?(slotOf handle: UInt64) {
    guard Handle.kind(of: handle) == Handle.Kind.lifetime,
      let slot = Self.directory.slot(Handle.index(of: handle))
    else { return nil }
    index = Handle.index(of: handle)
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The lifetime that a registration is a member of.
  init?(of registration: Registration) {
    guard let extras = registration.storage.pointee.extras else { return nil }
    self.init(slotOf: extras.pointee.membership.lifetime)
  }

  var lock: Lock { Lock.lifetimes(index) }

  var id: UInt64 {
    get { storage.pointee.header.id.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.id.store(newValue, ordering: .relaxed) }
  }

  // MARK: - Beginning and counting

  /// - Returns: the handle of a lifetime without members.
  static func create() throws(Status) -> UInt64 {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    guard Process.start() else { throw .outOfMemory }
    let index = try pool.take(from: directory)
    let slot = directory.slot(index).unsafelyUnwrapped
    let storage = slot.assumingMemoryBound(to: Storage.self)
    let handle = Handle.next(
      after: storage.pointee.header.id.load(ordering: .relaxed), kind: Handle.Kind.lifetime,
      index: index)
    storage.pointee.header.id.store(handle, ordering: .releasing)
    return handle
  }

  static func count(_ handle: UInt64) throws(Status) -> Int {
    guard let lifetime = Lifetime(slotOf: handle) else { throw .invalidHandle }
    lifetime.lock.lock()
    defer { lifetime.lock.unlock() }
    guard lifetime.id == handle else { throw .invalidHandle }
    return Int(lifetime.storage.pointee.liveCount)
  }

  /// Gives the slot back once it has ended and nobody refers to it. The lock is held.
  func vacateIfGone() {
    guard Handle.kind(of: id) == Handle.Kind.leaving, storage.pointee.enders == 0,
      storage.pointee.live == 0, storage.pointee.leaving == 0
    else { return }
    id = Handle.change(id, to: Handle.Kind.vacant)
    Lock.slabs.lock()
    Self.pool.giveBack(index, to: Self.directory)
    Lock.slabs.unlock()
  }
}
