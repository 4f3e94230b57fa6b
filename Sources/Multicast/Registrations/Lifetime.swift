import MulticastShims
import Synchronization

/// A group of registrations, in any multicasts, that are removed together.
///
/// A registration that was added with a lifetime is its member until its release function has
/// returned. The live members are linked through their details.
struct Lifetime {
  struct Storage: ~Copyable {
    /// The handle until the lifetime ends; then of kind `retired` until the last member is gone.
    var header: SlotHeader

    // Guarded by the lifetime's lock.

    /// Index + 1 of the first member that is live, or about to be.
    var firstLive: UInt32
    var liveCount: UInt32
    /// The fork generation in which it was created; see `Fork.generation`.
    let process: Atomic<UInt32>
    var role: Membership.Role
    /// The queue to which the members deliver, if the lifetime belongs to a queue.
    var queue: Handle
    /// Threads that wait for the end of a lifetime that another thread has ended. They are woken
    /// when the slot is reclaimed.
    let waiterCount: Atomic<UInt32>
    /// Members whose release function has not returned yet, live ones included; and 1 for a thread
    /// that is ending the lifetime. At 0 the slot of an ended lifetime is vacant. Read without the
    /// lock by threads that wait.
    let unfinished: Atomic<UInt32>
  }

  static var pool: SlotPool { SlotPool(.lifetimes, stride: MemoryLayout<Storage>.stride) }

  /// The role of its members.
  let role: Membership.Role
  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot that a handle leads to, whatever its occupant; nil if it leads to no slot.
  init?(slotOf handle: Handle) {
    switch handle.kind {
    case .lifetime: role = .owned
    case .recipients: role = .recipient
    default: return nil
    }
    guard let slot = Self.pool.directory.slot(handle.index) else { return nil }
    index = handle.index
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The same, for a handle of one role.
  init?(slotOf handle: Handle, as role: Membership.Role) {
    self.init(slotOf: handle)
    if self.role != role { return nil }
  }

  /// The occupant of a slot.
  init(slot: UnsafeMutableRawPointer, index: UInt32) {
    self.index = index
    storage = slot.assumingMemoryBound(to: Storage.self)
    role = storage.pointee.role
  }

  /// The lifetime of which a registration is a member.
  init?(of registration: Registration, as role: Membership.Role) {
    guard let membership = Membership.of(registration, role) else { return nil }
    self.init(slotOf: membership.pointee.lifetime)
  }

  // MARK: - Fields

  var lock: Lock { Lock.lifetimes(index) }

  var id: Handle {
    get { storage.pointee.header.id.load(ordering: .relaxed) }
    nonmutating set { storage.pointee.header.id.store(newValue, ordering: .relaxed) }
  }

  var liveCount: UInt32 {
    get { storage.pointee.liveCount }
    nonmutating set { storage.pointee.liveCount = newValue }
  }

  var firstLive: Registration? {
    let first = storage.pointee.firstLive
    return first == 0 ? nil : Registration(index: first &- 1)
  }

  /// Whether only the ending thread is left. Acquire: pairs with `removeUnfinished`.
  // order: last_member
  var isFinished: Bool { storage.pointee.unfinished.load(ordering: .acquiring) == 1 }

  func withLock<Result>(
    _ handle: Handle, _ body: () throws(Status) -> Result
  ) throws(Status) -> Result {
    lock.lock()
    defer { lock.unlock() }
    guard id == handle else { throw .invalidHandle }
    return try body()
  }

  static func isValid(_ handle: Handle) -> Bool {
    Lifetime(slotOf: handle, as: .owned)?.id == handle
  }

  static func count(_ handle: Handle) throws(Status) -> Int {
    guard let lifetime = Lifetime(slotOf: handle, as: .owned) else { throw .invalidHandle }
    return try lifetime.withLock(handle) { () throws(Status) in Int(lifetime.liveCount) }
  }

  // MARK: - Finishing

  /// The key of threads that sleep until the last member is released.
  var key: Sleeper.Key { UInt64(UInt(bitPattern: storage)) }

  /// Counts one as finished. The last one reclaims the slot of an ended lifetime.
  func removeUnfinished() {
    // Acquire and release: the effects of the release functions happen before the end returns.
    let left = storage.pointee.unfinished.wrappingSubtract(
      1, ordering: .acquiringAndReleasing  // order: last_member
    ).newValue
    if left > 0 {
      if left == 1 && id.kind == .retired { Waits.wake(key) }
      return
    }
    lock.lock()
    defer { lock.unlock() }
    // Checked again under the lock: the lifetime may have ended since, and a thread may be ending
    // it.
    guard id.kind == .retired, storage.pointee.unfinished.load(ordering: .relaxed) == 0 else {
      return
    }
    checkInvariants()
    id = id.changed(to: .vacant)
    let hasWaiters = storage.pointee.waiterCount.exchange(0, ordering: .relaxed) > 0
    Self.pool.reclaim(index)
    if hasWaiters { Waits.wake(key) }
  }
}
