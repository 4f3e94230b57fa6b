import Synchronization

/// The members are linked both ways, and counted. The lifetime's lock is held.
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
