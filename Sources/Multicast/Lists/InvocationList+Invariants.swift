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
        if !Self.isDead(entry(position)) {
          alive &+= 1
          checkLive(position, multicast, check)
          let priority = Self.priority(of: entry(position))
          check.that(priority <= highest, "priorities do not rise", position)
          highest = priority
        }
      }
      check.that(alive == live, "live counts the entries that are not dead", live, alive)
      if count > 0 && !Self.isDead(entry(count &- 1)) {
        check.that(header.lastPriority == highest, "the last priority is that of the last entry")
      }
    }

    /// Checks that do not look at all entries.
    private func checkNewest(_ multicast: Multicast, _ check: Check) {
      for position in count &- 4..<count {
        if !Self.isDead(entry(position)) { checkLive(position, multicast, check) }
      }
    }

    private func checkLive(_ position: UInt32, _ multicast: Multicast, _ check: Check) {
      let entry = self.entry(position)
      let registration = Registration(index: entry.pointee.token.index)
      check.that(
        registration.id == entry.pointee.token, "the registration of a live entry is live",
        position)
      check.that(
        registration.owner == multicast.handle.index, "a registration knows its multicast",
        registration.owner, multicast.handle.index)
      check.that(
        registration.place == position, "a registration knows its place", registration.place,
        position)
      let state = entry.pointee.state.load(ordering: .relaxed)
      check.that(
        (state & State.hasPendingCleanup != 0) == registration.hasPendingCleanup,
        "the state shows pending cleanup", state)
      checkState(of: entry, registration.details, check)
    }

    /// Bits of the state say what is in the details.
    private func checkState(
      of entry: Address, _ details: RegistrationDetails.Address?,
      _ check: Check
    ) {
      let state = entry.pointee.state.load(ordering: .relaxed)
      let needsDetails = State.filtered | State.weak | State.queued | State.prioritized
      guard let details else {
        return check.that(
          state & needsDetails == 0, "a registration without details needs none", state)
      }
      check.that(
        (state & State.prioritized != 0) == (details.pointee.priority != 0),
        "the state shows a priority", state)
      check.that(
        (state & State.weak != 0) == (details.pointee.lock != nil), "the state shows a lock", state)
      check.that(
        (state & State.queued != 0) == (details.pointee.queue != nil), "the state shows a queue",
        state)
      check.that(
        details.pointee.context == entry.pointee.context, "details are of the same delegate")
    }

    /// Entries have their places in the next older list.
    func checkPlaces(in older: InvocationList, _ check: Check) {
      for place in count &- min(count, Check.reach())..<count {
        let old = entry(place).pointee.oldPlace.load(ordering: .relaxed)
        if old != Entry.none {
          check.that(
            old < older.count && place < header.oldEnd
              && older.entry(old).pointee.token == entry(place).pointee.token,
            "an entry knows its place in the next older list", UInt64(place), UInt64(old))
        }
      }
    }

    /// Of a list that was replaced: what was removed since is dead here, too.
    func checkRetired(_ check: Check) {
      for position in count &- min(count, Check.reach())..<count {
        check.that(
          Self.isDead(entry(position)) || Registration.isLive(entry(position).pointee.token),
          "what was removed is dead in retired lists, too", position)
      }
    }
  }
#endif
