import MulticastShims

extension Registration {
  /// Nobody lives in the vacant slots of a stripe. Its lock is held.
  @inline(__always)
  static func checkInvariants(
    of stripe: Stripe, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      check(stripe, Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    @inline(never)
    private static func check(_ stripe: Stripe, _ check: Check) {
      check.that(
        stripe.state.pointee.next_unused <= stripe.state.pointee.end_unused,
        "what was never used is within the newest slab", UInt64(stripe.state.pointee.next_unused),
        UInt64(stripe.state.pointee.end_unused))
      check.walk(stripe.state.pointee.first_vacant) { index in
        let registration = Registration(index: index)
        check.that(
          Handle.kind(of: registration.id) == Handle.Kind.vacant, "nobody lives in a vacant slot",
          UInt64(index), Handle.kind(of: registration.id))
        check.that(
          Stripe(of: registration.owner).state == stripe.state, "a slot stays in its stripe",
          UInt64(index), UInt64(registration.owner))
        check.that(
          registration.storage.pointee.extras == nil, "who is vacant has no extras", UInt64(index))
        return registration.storage.pointee.link
      }
    }
  #endif
}

extension RegistrationChain {
  /// It has an end, and nobody on it is live or vacant. It is the caller's.
  @inline(__always)
  func checkLeaving(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.walk(first.map { $0.index &+ 1 } ?? 0) { index in
        let registration = Registration(index: index)
        check.that(
          Handle.kind(of: registration.id) == Handle.Kind.leaving, "who is seen off is leaving",
          UInt64(index), Handle.kind(of: registration.id))
        return registration.storage.pointee.link
      }
    #endif
  }
}
