import Synchronization

/// Joining and leaving. For the first two the stripe's lock of the registration is held.
extension Lifetime {
  /// Makes registrations members, before they are live: who ends the lifetime from now on finds them,
  /// and comes to the stripe's lock, so after they are.
  static func join(_ registrations: RegistrationChain, handle: UInt64) throws(Status) {
    if handle == 0 { return }
    guard let lifetime = Lifetime(slotOf: handle) else { throw .invalidHandle }
    lifetime.lock.lock()
    defer { lifetime.lock.unlock() }
    guard lifetime.id == handle else { throw .invalidHandle }
    for registration in registrations {
      Membership.push(registration, &lifetime.storage.pointee.live)
      lifetime.storage.pointee.liveCount &+= 1
      lifetime.storage.pointee.unfinished.wrappingAdd(1, ordering: .relaxed)
    }
  }

  /// A member has been removed.
  static func retire(_ registration: Registration) {
    guard let lifetime = Lifetime(of: registration) else { return }
    lifetime.lock.lock()
    Membership.remove(registration, &lifetime.storage.pointee.live)
    lifetime.storage.pointee.liveCount &-= 1
    lifetime.lock.unlock()
  }

  /// A removed member is in no call any more, and its release, if any, has returned. No lock is held.
  static func memberIsGone(_ handle: UInt64) {
    Lifetime(slotOf: handle).unsafelyUnwrapped.finishOne()
  }
}

/// A registration's place among the members of its lifetime. Guarded by the lifetime's lock, but for
/// `lifetime`, which stays as it was made.
struct Membership {
  /// The handle, or 0 for none.
  var lifetime: UInt64
  // Indices + 1 of registrations.
  var previous: UInt32 = 0
  var next: UInt32 = 0

  private static func of(_ link: UInt32) -> UnsafeMutablePointer<Extras>? {
    link == 0 ? nil : Registration(index: link &- 1).storage.pointee.extras
  }

  static func push(_ registration: Registration, _ list: inout UInt32) {
    let extras = registration.storage.pointee.extras.unsafelyUnwrapped
    extras.pointee.membership.previous = 0
    extras.pointee.membership.next = list
    of(list)?.pointee.membership.previous = registration.index &+ 1
    list = registration.index &+ 1
  }

  static func remove(_ registration: Registration, _ list: inout UInt32) {
    let extras = registration.storage.pointee.extras.unsafelyUnwrapped
    let membership = extras.pointee.membership
    of(membership.next)?.pointee.membership.previous = membership.previous
    if let previous = of(membership.previous) {
      previous.pointee.membership.next = membership.next
    } else {
      list = membership.next
    }
  }
}
