import MulticastShims
import Synchronization

extension Registration {
  /// A slot has just been taken from its pool. The stripe's lock is held.
  func checkTaken(
    from stripe: Stripe, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.that(id.kind == .vacant, "a vacant slot has no occupant", index)
      check.that(!hasPendingCleanup, "a vacant slot has no details", index)
      check.that(Stripe(of: owner) == stripe, "a slot stays in its stripe", index, owner)
    #endif
  }

  /// A slot is about to be put back. The stripe's lock is held.
  func checkReclaimed(
    to stripe: Stripe, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.that(Stripe(of: owner) == stripe, "a slot stays in its stripe", index, owner)
      check.that(!hasPendingCleanup, "a vacant slot has no details", index)
    #endif
  }
}

extension RegistrationChain {
  /// The chain has an end, and all its registrations are retired. It belongs to the caller.
  func checkRetired(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.walk(first.map { $0.index &+ 1 } ?? 0) { index in
        let registration = Registration(index: index)
        check.that(
          registration.id.kind == .retired, "a registration that is being removed is retired",
          index, registration.id.kind.rawValue)
        return registration.storage.pointee.header.link.load(ordering: .relaxed)
      }
    #endif
  }
}
