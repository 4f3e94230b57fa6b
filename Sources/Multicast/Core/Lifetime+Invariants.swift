import Synchronization

extension Lifetime {
  /// The members are linked both ways, and counted. The lifetime's lock is held.
  @inline(__always)
  func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      check(Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    @inline(never)
    private func check(_ check: Check) {
      let kind = Handle.kind(of: id)
      let living = role == .owned ? Handle.Kind.lifetime : Handle.Kind.recipients
      check.that(
        kind == living || kind == Handle.Kind.leaving, "who has members lasts, or is ending", kind)
      let liveCount = UInt64(storage.pointee.liveCount)
      let unfinished = UInt64(storage.pointee.unfinished.load(ordering: .relaxed))
      check.that(
        unfinished >= liveCount, "live members are not finished with", unfinished, liveCount)

      var (counted, last) = (UInt64(0), UInt32(0))
      check.walk(storage.pointee.live) { index in
        let member = Registration(index: index)
        let membership = Membership.of(member, role)
        check.that(membership != nil, "a member has a membership", UInt64(index))
        guard let membership else { return 0 }
        check.that(
          membership.pointee.lifetime == Handle.change(id, to: living),
          "a member knows its lifetime", membership.pointee.lifetime, id)
        check.that(
          membership.pointee.previous == last, "a member knows the one before",
          UInt64(membership.pointee.previous), UInt64(last))
        counted &+= 1
        last = index &+ 1
        if membership.pointee.next == 0 {
          check.that(counted == liveCount, "the live members are counted", counted, liveCount)
        }
        return membership.pointee.next
      }
      check.that(
        storage.pointee.live != 0 || liveCount == 0, "the live members are counted", 0, liveCount)
    }
  #endif
}
