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
      let (since, now) = (fields.bias.unsettledSince, Fence.Stamp.now.rawValue &+ 1)
      check.that(since <= now, "the switch to fenced is not in the future", since, now)
    }

    private func checkRetired(_ check: Check) {
      let occupant = fields.header.id.load(ordering: .relaxed)
      for list in retired {
        let owner = list.header.owner
        check.that(
          owner.index == handle.index && owner.generation <= occupant.generation,
          "a retired list is of an occupant of the slot")
        check.that(list.address != self.list?.address, "the current list is not retired")
      }
    }
  #endif
}
