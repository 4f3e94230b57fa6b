import MulticastShims
import Synchronization

/// A group of registrations that are removed together. The registrations may belong to any number
/// of multicasts.
///
/// A registration added with a lifetime is a member of the lifetime until its release function has
/// returned. The live members are linked through their details.
struct Lifetime {
  struct Storage: ~Copyable {
    /// The handle of the lifetime. When the lifetime ends, the handle's kind becomes `retired`, and
    /// it stays `retired` until the last member is gone.
    var header: SlotHeader

    // Guarded by the lifetime's lock.

    /// The index plus 1 of the first member that is live or about to become live.
    var firstLive: UInt32
    var liveCount: UInt32
    /// The fork generation in which the lifetime was created (see `Fork.generation`).
    let process: Atomic<UInt32>
    var role: Membership.Role
    /// The queue to which the members deliver, if the lifetime belongs to a queue.
    var queue: Handle
    /// The number of threads that are waiting for another thread to end this lifetime. These
    /// threads are woken when the slot is reclaimed.
    let waiterCount: Atomic<UInt32>
    /// The number of members whose release functions have not returned yet, including live members,
    /// plus 1 while a thread is ending the lifetime. If the lifetime has ended and the number
    /// reaches 0, the slot becomes vacant. Waiting threads read the number without the lock.
    let unfinished: Atomic<UInt32>
  }

  static var pool: SlotPool { SlotPool(.lifetimes, stride: MemoryLayout<Storage>.stride) }

  let role: Membership.Role
  let index: UInt32
  let storage: UnsafeMutablePointer<Storage>

  /// The slot at the index of a handle, or nil if there is no such slot. The slot may have been
  /// reused since.
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

  /// Like `init(slotOf:)`, but nil if the members of the lifetime have a different role.
  init?(slotOf handle: Handle, as role: Membership.Role) {
    self.init(slotOf: handle)
    if self.role != role { return nil }
  }

  /// The current lifetime in a slot.
  init(slot: UnsafeMutableRawPointer, index: UInt32) {
    self.index = index
    storage = slot.assumingMemoryBound(to: Storage.self)
    role = storage.pointee.role
  }

  /// The lifetime of which a registration is a member in this role; nil if there is none.
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

  /// Whether `unfinished` counts only the thread that is ending the lifetime. Acquire: pairs with
  /// the release in `removeUnfinished`.
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

  /// The key of threads that sleep until the last member has been released.
  var key: Sleeper.Key { UInt64(UInt(bitPattern: storage)) }

  /// Subtracts a member, or the thread that ends the lifetime, from `unfinished`.
  func removeUnfinished() {
    // Acquire and release: the effects of all release functions happen before the function that
    // ends the lifetime returns.
    let left = storage.pointee.unfinished.wrappingSubtract(
      1, ordering: .acquiringAndReleasing  // order: last_member
    ).newValue
    if left > 0 {
      if left == 1 && id.kind == .retired { Waits.wake(key) }
      return
    }
    lock.lock()
    defer { lock.unlock() }
    // Check again under the lock, because the lifetime may have ended since the count reached 0,
    // and the thread that ends it may still be counted.
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

/// Joining and leaving a lifetime. Callers of `join` and `retire` hold the registration's stripe
/// lock.
extension Lifetime {
  /// Makes registrations members before they become live. A thread that ends the lifetime later
  /// finds the new members, and takes the stripe's lock before it removes them. By the time it has
  /// the lock, the members are live.
  static func join(_ registrations: RegistrationChain, _ options: Options) throws(Status) {
    try join(registrations, options.lifetime, as: .owned)
    do throws(Status) {
      try join(registrations, options.destination?.recipients ?? .none, as: .recipient)
    } catch {
      for registration in registrations { leave(registration, as: .owned)?.removeUnfinished() }
      throw error
    }
  }

  /// Whether a handle in a caller's options is none or belongs to a lifetime that has not ended
  /// yet. The lifetime may still end before the registration joins it.
  static func mayBeJoined(_ handle: Handle) -> Bool {
    handle.isNone || isValid(handle)
  }

  private static func join(
    _ registrations: RegistrationChain, _ handle: Handle, as role: Membership.Role
  ) throws(Status) {
    if handle.isNone { return }
    guard let lifetime = Lifetime(slotOf: handle, as: role) else { throw .invalidHandle }
    try lifetime.withLock(handle) { () throws(Status) in
      for registration in registrations {
        Membership.push(registration, role, &lifetime.storage.pointee.firstLive)
        lifetime.liveCount &+= 1
        //~ member_not_unfinished
        lifetime.storage.pointee.unfinished.wrappingAdd(1, ordering: .relaxed)
      }
      lifetime.checkInvariants()
    }
  }

  /// Called when a registration is retired. Removes it from the live members of its lifetimes.
  @_optimize(speed)
  static func retire(_ registration: Registration) {
    _ = leave(registration, as: .owned)
    _ = leave(registration, as: .recipient)
  }

  /// - Returns: the lifetime that the registration was a live member of, or nil if there is none.
  ///   The lifetime still counts the registration in `unfinished`.
  @_optimize(speed)
  private static func leave(_ registration: Registration, as role: Membership.Role) -> Lifetime? {
    guard let lifetime = Lifetime(of: registration, as: role) else { return nil }
    lifetime.lock.lock()
    Membership.remove(registration, role, &lifetime.storage.pointee.firstLive)
    lifetime.liveCount &-= 1  //~ member_not_counted_down
    lifetime.checkInvariants()
    lifetime.lock.unlock()
    return lifetime
  }

  /// Called after all calls to a removed member, and to its release function if it has one, have
  /// returned. No lock is held.
  static func memberIsGone(_ handle: Handle) {
    Lifetime(slotOf: handle).unsafelyUnwrapped.removeUnfinished()
  }
}

extension Lifetime {
  /// - Returns: the handle of a new lifetime without members.
  static func create(_ role: Membership.Role = .owned) throws(Status) -> Handle {
    try pool.create(role.kind) { (storage: UnsafeMutablePointer<Storage>, _) in
      storage.pointee.waiterCount.store(0, ordering: .relaxed)
      storage.pointee.process.store(Fork.generation, ordering: .relaxed)
      storage.pointee.role = role
      storage.pointee.queue = .none
    }
  }

  /// Ends a lifetime that has no members and that no caller knows.
  static func discard(_ handle: Handle) {
    let lifetime = Lifetime(slotOf: handle).unsafelyUnwrapped
    lifetime.id = handle.changed(to: .vacant)
    pool.reclaim(handle.index)
  }
}

/// Checks that the members are linked in both directions and counted. The caller holds the
/// lifetime's lock.
extension Lifetime: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      check.that(
        id.kind == role.kind || id.kind == .retired, "a lifetime with members lasts, or is ending",
        id.kind.rawValue)
      let unfinished = UInt64(storage.pointee.unfinished.load(ordering: .relaxed))
      check.that(
        unfinished >= UInt64(liveCount), "live members are not finished", unfinished, liveCount)

      var (counted, last) = (UInt64(0), UInt32(0))
      check.walk(storage.pointee.firstLive) { index in
        let membership = Membership.of(Registration(index: index), role)
        check.that(membership != nil, "a member has a membership", index)
        guard let membership else { return 0 }
        check.that(
          membership.pointee.lifetime == id.changed(to: role.kind), "a member knows its lifetime",
          membership.pointee.lifetime.rawValue, id.rawValue)
        check.that(
          membership.pointee.previous == last, "a member knows the one before",
          membership.pointee.previous, last)
        counted &+= 1
        last = index &+ 1
        if membership.pointee.next == 0 {
          check.that(
            counted == UInt64(liveCount), "the live members are counted", counted, liveCount)
        }
        return membership.pointee.next
      }
      check.that(
        storage.pointee.firstLive != 0 || liveCount == 0, "the live members are counted", 0,
        liveCount)
    }
  #endif
}

/// The links of a registration in a lifetime's list of members. The lifetime's lock guards all
/// fields except `lifetime`, which never changes.
struct Membership {
  /// A registration can be a member of one lifetime per role.
  enum Role: Int {
    /// The lifetime in the options of the add.
    case owned = 0
    /// The lifetime of the queue to which the registration delivers.
    case recipient = 1

    /// The kind of a lifetime's handle if its members have this role.
    var kind: Handle.Kind { self == .owned ? .lifetime : .recipients }
  }

  static let roleCount = 2

  /// The handle of the lifetime, or none.
  var lifetime: Handle
  // The index plus 1 of the neighbour on each side in the list, or 0 if there is none.
  var previous: UInt32 = 0
  var next: UInt32 = 0

  static func of(
    _ registration: Registration, _ role: Role
  ) -> UnsafeMutablePointer<Membership>? {
    guard let details = registration.details else { return nil }
    return RegistrationDetails.membership(of: details, role)
  }

  private static func of(_ link: UInt32, _ role: Role) -> UnsafeMutablePointer<Membership>? {
    link == 0 ? nil : of(Registration(index: link &- 1), role)
  }

  static func push(_ registration: Registration, _ role: Role, _ list: inout UInt32) {
    let membership = of(registration, role).unsafelyUnwrapped
    membership.pointee.previous = 0
    membership.pointee.next = list
    of(list, role)?.pointee.previous = registration.index &+ 1  //~ member_without_previous
    list = registration.index &+ 1
  }

  static func remove(_ registration: Registration, _ role: Role, _ list: inout UInt32) {
    let membership = of(registration, role).unsafelyUnwrapped.pointee
    of(membership.next, role)?.pointee.previous = membership.previous
    if let previous = of(membership.previous, role) {
      previous.pointee.next = membership.next
    } else {
      list = membership.next
    }
  }
}
