import Synchronization

/// The lists between any two changes. The stripe's lock is held.
extension Multicast: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      checkRetired(check)
      check.that(MemoryLayout<Storage>.size <= 64, "a multicast fits into its slot")
      // The slot may have no occupant.
      guard isCurrent, handle.isOfMulticast else { return }
      list?.checkCurrent(self, check)
      checkListenerFlag(check)
      let invoker = invokerNumber & ~(Self.special | Self.open)
      check.that(
        invoker <= Self.multipleInvokers, "the invoker is none, one thread, or several", invoker)
      check.that(
        invoker != 0 || invokerNumber & Self.fenced == 0,
        "a multicast that is fenced has an invoker", invokerNumber)
      check.that(
        invokerNumber == Self.completed(invokerNumber), "the word says whether it is open",
        invokerNumber)
      let (since, now) = (fields.bias.fencedSince.rawValue, Epoch.current.rawValue)
      check.that(since <= now, "the epoch has begun at which it was fenced", since, now)
    }

    private func checkRetired(_ check: Check) {
      let occupant = fields.header.id.load(ordering: .relaxed)
      let pending = fields.newestRetired.load(ordering: .relaxed).rawValue
      let newest = fields.firstRetired.map { InvocationList($0).header.retiredAt.rawValue } ?? 0
      check.that(
        (newest == 0) == (pending == 0) && pending >= newest,
        "the newest epoch is that of the newest retired list", pending, newest)
      var last = UInt64.max
      var newer = self.list
      for list in retired {
        let (epoch, owner) = (list.header.retiredAt.rawValue, list.header.owner)
        check.that(
          epoch > 0 && epoch < last, "epochs of retired lists fall, from the newest", epoch, last)
        check.that(
          epoch <= Epoch.current.rawValue, "the epoch of a retired list has begun", epoch,
          Epoch.current.rawValue)
        check.that(
          owner.index == handle.index && owner.generation <= occupant.generation,
          "a retired list is of an occupant of the slot")
        check.that(list.address != self.list?.address, "the current list is not retired")
        list.checkRetired(check)
        if let newer, newer.header.owner == owner { newer.checkPlaces(in: list, check) }
        newer = list
        last = epoch
      }
    }
  #endif
}
