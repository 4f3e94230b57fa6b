import Synchronization

extension Multicast {
  /// What holds for its lists between any two changes. The stripe's lock is held.
  @inline(__always)
  func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      check(Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    @inline(never)
    private func check(_ check: Check) {
      checkRetired(check)
      // It may have come by the address of a slot in which nobody lives.
      guard isCurrent, Handle.kind(of: handle) == Handle.Kind.multicast else { return }
      list?.checkCurrent(self, check)
      let invoker = storage.pointee.invoker.load(ordering: .relaxed) &- handle
      check.that(
        invoker <= Self.everyone, "who invokes is a thread, nobody, or everyone", invoker)
    }

    /// The lists that were replaced, of earlier inhabitants of the slot too.
    private func checkRetired(_ check: Check) {
      let inhabitant = storage.pointee.header.id.load(ordering: .relaxed)
      let pending = storage.pointee.pending.load(ordering: .relaxed)
      let newest = storage.pointee.retired?.pointee.ticket ?? 0
      check.that(
        (newest == 0) == (pending == 0) && pending >= newest,
        "what is pending are the retired lists", pending, newest)
      var last = UInt64.max
      var next = storage.pointee.retired
      while let header = next {
        let (ticket, owner) = (header.pointee.ticket, header.pointee.owner)
        check.that(
          ticket > 0 && ticket < last, "tickets of retired lists fall, from the newest", ticket,
          last)
        check.that(
          ticket <= Ticket.last, "the ticket of a retired list was drawn", ticket, Ticket.last)
        check.that(
          Handle.index(of: owner) == Handle.index(of: handle)
            && Handle.generation(of: owner) <= Handle.generation(of: inhabitant),
          "a retired list is of an inhabitant of the slot")
        check.that(header != list?.header, "the current list is not retired")
        InvocationList(header).checkRetired(check)
        last = ticket
        next = header.pointee.next
      }
    }
  #endif
}
