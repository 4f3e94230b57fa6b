import Synchronization

/// Joining and leaving. For the first two the stripe's lock of the registration is held.
extension Lifetime {
  /// Makes registrations members, before they are live: who ends the lifetime from now on finds
  /// them, and comes to the stripe's lock, so after they are.
  static func join(_ registrations: RegistrationChain, _ options: Options) throws(Status) {
    try join(registrations, options.lifetime, as: .owned)
    do throws(Status) {
      try join(registrations, options.destination?.recipients ?? 0, as: .recipient)
    } catch {
      for registration in registrations { leave(registration, as: .owned)?.finishOne() }
      throw error
    }
  }

  /// Whether a caller's handle is that of a lifetime that has not ended yet, or none. It may end
  /// before it is joined: this only keeps what cannot be from beginning.
  static func mayBeJoined(_ handle: UInt64) -> Bool {
    if handle == 0 { return true }
    guard let lifetime = Lifetime(slotOf: handle) else { return false }
    return lifetime.role == .owned && lifetime.id == handle
  }

  private static func join(
    _ registrations: RegistrationChain, _ handle: UInt64, as role: Membership.Role
  ) throws(Status) {
    if handle == 0 { return }
    guard let lifetime = Lifetime(slotOf: handle), lifetime.role == role else {
      throw .invalidHandle
    }
    lifetime.lock.lock()
    defer { lifetime.lock.unlock() }
    guard lifetime.id == handle else { throw .invalidHandle }
    for registration in registrations {
      Membership.push(registration, role, &lifetime.storage.pointee.live)
      lifetime.storage.pointee.liveCount &+= 1
      lifetime.storage.pointee.unfinished.wrappingAdd(1, ordering: .relaxed)
    }
    lifetime.checkInvariants()
  }

  /// A member has been removed.
  static func retire(_ registration: Registration) {
    _ = leave(registration, as: .owned)
    _ = leave(registration, as: .recipient)
  }

  /// - Returns: the lifetime that it was a live member of, if any; it is still not finished with
  ///   it.
  private static func leave(_ registration: Registration, as role: Membership.Role) -> Lifetime? {
    guard let lifetime = Lifetime(of: registration, as: role) else { return nil }
    lifetime.lock.lock()
    Membership.remove(registration, role, &lifetime.storage.pointee.live)
    lifetime.storage.pointee.liveCount &-= 1
    lifetime.checkInvariants()
    lifetime.lock.unlock()
    return lifetime
  }

  /// A removed member is in no call any more, and its release, if any, has returned. No lock is
  /// held.
  static func memberIsGone(_ handle: UInt64) {
    Lifetime(slotOf: handle).unsafelyUnwrapped.finishOne()
  }
}

/// A registration's place among the members of one lifetime. Guarded by the lifetime's lock, but
/// for `lifetime`, which stays as it was made.
struct Membership {
  /// What a registration is to a lifetime: it can be a member of one in each role.
  enum Role: Int {
    /// Added under the lifetime.
    case owned = 0
    /// Delivers to the queue that keeps the lifetime.
    case recipient = 1
  }

  static let roleCount = 2

  /// The handle, or 0 for none.
  var lifetime: UInt64
  // Indices + 1 of registrations.
  var previous: UInt32 = 0
  var next: UInt32 = 0

  static func of(
    _ registration: Registration, _ role: Role
  ) -> UnsafeMutablePointer<Membership>? {
    guard let extras = registration.storage.pointee.extras else { return nil }
    return Extras.membership(of: extras, role)
  }

  private static func of(_ link: UInt32, _ role: Role) -> UnsafeMutablePointer<Membership>? {
    link == 0 ? nil : of(Registration(index: link &- 1), role)
  }

  fileprivate static func push(_ registration: Registration, _ role: Role, _ list: inout UInt32) {
    let membership = of(registration, role).unsafelyUnwrapped
    membership.pointee.previous = 0
    membership.pointee.next = list
    of(list, role)?.pointee.previous = registration.index &+ 1
    list = registration.index &+ 1
  }

  fileprivate static func remove(
    _ registration: Registration, _ role: Role, _ list: inout UInt32
  ) {
    let membership = of(registration, role).unsafelyUnwrapped.pointee
    of(membership.next, role)?.pointee.previous = membership.previous
    if let previous = of(membership.previous, role) {
      previous.pointee.next = membership.next
    } else {
      list = membership.next
    }
  }
}
