import Synchronization

/// Joining and leaving a lifetime. For `join` and `retire` the registration's stripe lock is held.
extension Lifetime {
  /// Makes registrations members before they are live. A thread that ends the lifetime afterwards
  /// finds them, and waits for the stripe's lock; so it finds them live.
  static func join(_ registrations: RegistrationChain, _ options: Options) throws(Status) {
    try join(registrations, options.lifetime, as: .owned)
    do throws(Status) {
      try join(registrations, options.destination?.recipients ?? .none, as: .recipient)
    } catch {
      for registration in registrations { leave(registration, as: .owned)?.removeUnfinished() }
      throw error
    }
  }

  /// Whether a handle in options is none, or belongs to a lifetime that has not ended yet. The
  /// lifetime may still end before the registration joins it.
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

  /// Takes a registration that is being removed out of the live members.
  @_optimize(speed)
  static func retire(_ registration: Registration) {
    _ = leave(registration, as: .owned)
    _ = leave(registration, as: .recipient)
  }

  /// - Returns: the lifetime of which the registration was a live member, if any. The member is not
  ///   finished yet.
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

  /// Called when a removed member is in no call any more and its release function, if any, has
  /// returned. No lock is held.
  static func memberIsGone(_ handle: Handle) {
    Lifetime(slotOf: handle).unsafelyUnwrapped.removeUnfinished()
  }
}

extension Lifetime {
  /// - Parameter role: `recipient` for a lifetime of the library's.
  /// - Returns: the handle of a lifetime without members.
  static func create(_ role: Membership.Role = .owned) throws(Status) -> Handle {
    try pool.create(role.kind) { (storage: UnsafeMutablePointer<Storage>, _) in
      storage.pointee.waiterCount.store(0, ordering: .relaxed)
      storage.pointee.process.store(Fork.generation, ordering: .relaxed)
      storage.pointee.role = role
      storage.pointee.queue = .none
    }
  }
}

/// A registration's place among the members of a lifetime. Guarded by the lifetime's lock, except
/// `lifetime`, which does not change.
struct Membership {
  /// A registration can be a member of one lifetime in each role.
  enum Role: Int {
    /// Added with the lifetime in its options.
    case owned = 0
    /// Delivers to the queue to which the lifetime belongs.
    case recipient = 1

    /// That of the handles of such lifetimes.
    var kind: Handle.Kind { self == .owned ? .lifetime : .recipients }
  }

  static let roleCount = 2

  /// The handle, or none.
  var lifetime: Handle
  // Indices + 1 of registrations.
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
