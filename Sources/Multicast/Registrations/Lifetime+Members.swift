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
      for registration in registrations { leave(registration, as: .owned)?.finishOne() }
      throw error
    }
  }

  /// Whether a handle in options is none, or that of a lifetime that has not ended yet. The
  /// lifetime may still end before it is joined.
  static func mayBeJoined(_ handle: Handle) -> Bool {
    if handle.isNone { return true }
    guard let lifetime = Lifetime(slotOf: handle) else { return false }
    return lifetime.role == .owned && lifetime.id == handle
  }

  private static func join(
    _ registrations: RegistrationChain, _ handle: Handle, as role: Membership.Role
  ) throws(Status) {
    if handle.isNone { return }
    guard let lifetime = Lifetime(slotOf: handle), lifetime.role == role else {
      throw .invalidHandle
    }
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

  /// - Returns: the lifetime of which it was a live member, if any. It is still not finished.
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
    Lifetime(slotOf: handle).unsafelyUnwrapped.finishOne()
  }
}
