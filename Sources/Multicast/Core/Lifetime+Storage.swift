import MulticastShims
import Synchronization

/// What registrations can be made to end with, wherever they are.
///
/// A registration that was added under a lifetime is its member until its release has returned; the
/// live ones are linked through their extras.
struct Lifetime {
  struct Storage: ~Copyable {
    /// The handle while it lasts; then of kind `leaving` until the last member is gone.
    var header: SlotHeader

    // Guarded by the lifetime's lock; the list holds indices + 1 of registrations.

    /// The first of the members that are live, or about to be.
    var live: UInt32
    var liveCount: UInt32
    /// The process that it was created in: how many forks ago the first one was.
    var process: UInt32
    /// What its members are to it.
    var role: Membership.Role
    /// Members whose release has not returned yet, the live ones included; and 1 while a thread
    /// ends it. At 0 an ended lifetime's slot is vacant. Not under the lock: read by who sleeps.
    let unfinished: Atomic<UInt32>
  }

  nonisolated(unsafe) static var pool = SlotPool()  // guarded by the slab lock

  @inline(__always) static var directory: SlabDirectory {
    SlabDirectory(
      shims_get_lifetime_directory().unsafelyUnwrapped, stride: MemoryLayout<Storage>.stride)
  }

  /// What its members are to it.
  let role: Membership.Role
  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whoever lives there; nil where it leads nowhere.
  init?(slotOf handle: UInt64) {
    switch Handle.kind(of: handle) {
    case Handle.Kind.lifetime: role = .owned
    case Handle.Kind.recipients: role = .recipient
    default: return nil
    }
    guard let slot = Self.directory.slot(Handle.index(of: handle)) else { return nil }
    index = Handle.index(of: handle)
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Whoever lives in a slot.
  init(slot: UnsafeMutableRawPointer, index: UInt32) {
    self.index = index
    storage = slot.assumingMemoryBound(to: Storage.self)
    role = storage.pointee.role
  }

  /// The lifetime that a registration is a member of.
  init?(of registration: Registration, as role: Membership.Role) {
    guard let membership = Membership.of(registration, role) else { return nil }
    self.init(slotOf: membership.pointee.lifetime)
  }

  var lock: Lock { Lock.lifetimes(index) }

  var id: UInt64 {
    get { storage.pointee.header.id.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.id.store(newValue, ordering: .relaxed) }
  }

  // MARK: - Beginning and counting

  /// - Parameter kind: Which handles lead to it: the caller's, or those that the library keeps.
  /// - Returns: the handle of a lifetime without members.
  static func create(kind: UInt64 = Handle.Kind.lifetime) throws(Status) -> UInt64 {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    guard Process.start() else { throw .outOfMemory }
    let (slot, handle) = try pool.take(from: directory, kind: kind)
    let storage = slot.assumingMemoryBound(to: Storage.self)
    storage.pointee.process = Process.generation
    storage.pointee.role = kind == Handle.Kind.lifetime ? .owned : .recipient
    storage.pointee.header.id.store(handle, ordering: .releasing)
    return handle
  }

  static func count(_ handle: UInt64) throws(Status) -> Int {
    guard let lifetime = Lifetime(slotOf: handle), lifetime.role == .owned else {
      throw .invalidHandle
    }
    lifetime.lock.lock()
    defer { lifetime.lock.unlock() }
    guard lifetime.id == handle else { throw .invalidHandle }
    return Int(lifetime.storage.pointee.liveCount)
  }

  /// One less to wait for. The last gives the slot of an ended lifetime back.
  func finishOne() {
    // Acquire and release: what the releases did happened before the end of the lifetime returns.
    let left = storage.pointee.unfinished.wrappingSubtract(
      1, ordering: .acquiringAndReleasing
    ).newValue
    if left > 0 {
      if left == 1 && Handle.kind(of: id) == Handle.Kind.leaving { Departures.wake() }
      return
    }
    lock.lock()
    defer { lock.unlock() }
    // Once more under the lock: it may have ended since, and belong to the thread that ends it.
    guard Handle.kind(of: id) == Handle.Kind.leaving,
      storage.pointee.unfinished.load(ordering: .relaxed) == 0
    else { return }
    checkInvariants()
    id = Handle.change(id, to: Handle.Kind.vacant)
    Lock.slabs.lock()
    Self.pool.giveBack(index, to: Self.directory)
    Lock.slabs.unlock()
  }
}
