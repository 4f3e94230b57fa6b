import MulticastHeader
import Synchronization

#if MULTICAST_INTERNAL_CHECKS
  /// The stripe's lock is held.
  extension InvocationList {
    /// Of the list that new invocations use.
    func checkCurrent(_ multicast: Multicast, _ check: Check) {
      check.that(header.owner == multicast.handle, "a list belongs to its multicast")
      check.that(count <= header.capacity, "there is room for all entries", count, header.capacity)
      check.that(live <= count, "live entries are entries", live, count)
      check.that(header.next == nil, "the current list is not retired")
      check.that(
        header.limit == min(header.capacity, header.warningCount &- 1),
        "the limit is below the count of the next warning", header.limit, header.warningCount)
      if Check.reach() < count { return checkNewest(multicast, check) }

      var alive: UInt32 = 0
      var highest = Int32.max
      for position in 0..<count {
        if entry(position).isLive {
          alive &+= 1
          checkLive(position, multicast, check)
          let priority = Registration(entry(position)).priority
          check.that(priority <= highest, "priorities do not rise", position)
          highest = priority
        }
      }
      check.that(alive == live, "live counts the entries that are not dead", live, alive)
      if count > 0 && entry(count &- 1).isLive {
        check.that(header.lastPriority == highest, "the last priority is that of the last entry")
      }
    }

    /// Checks that do not look at all entries.
    private func checkNewest(_ multicast: Multicast, _ check: Check) {
      for position in count &- 4..<count {
        if entry(position).isLive { checkLive(position, multicast, check) }
      }
    }

    private func checkLive(_ position: UInt32, _ multicast: Multicast, _ check: Check) {
      let registration = Registration(entry(position))
      check.that(
        registration.storage == Registration(index: registration.index).storage,
        "an entry names the slot of its token", position)
      check.that(
        registration.owner == multicast.handle.index, "a registration knows its multicast",
        registration.owner, multicast.handle.index)
      let isPlain = !registration.has(Registration.Flags.special | Registration.Flags.paused)
      check.that(
        isPlain == entry(position).isPlain, "the kind shows whether a registration is plain",
        position)
      let details = registration.details
      let needsSpecial =
        registration.has(Registration.Flags.once | Registration.Flags.shared)
        || details.map { $0.pointee.lock != nil || $0.pointee.queue != nil } ?? false
      check.that(
        !needsSpecial || registration.has(Registration.Flags.special),
        "a delegate that is not called plainly is special", position)
      check.that(
        details.map { $0.pointee.context == registration.delegate.context } ?? true,
        "details are of the same delegate", position)
    }
  }
#endif
