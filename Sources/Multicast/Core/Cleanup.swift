import MulticastShims

/// What a writer has to do once it has let go of the stripe's lock: fence, reclaim, wait, release.
struct Cleanup {
  let thread: ThreadRecord?

  /// A list was retired that others may be reading.
  var hasRetired = false

  /// Removed, and perhaps being called.
  var leaving = RegistrationChain()

  /// Whether only this thread can be in a call of what is leaving.
  var isAlone = true

  /// Removed, in no call, and given back already: only the release is left.
  var released: UnsafeMutablePointer<Extras>? = nil

  init(by thread: ThreadRecord? = .current) { self.thread = thread }

  /// Whether other threads have to be made to see what was changed.
  var needsFence: Bool { hasRetired || !(isAlone || leaving.isEmpty) }

  mutating func release(_ extras: UnsafeMutablePointer<Extras>) {
    extras.pointee.next = released
    released = extras
  }

  /// - Returns: `ok`; what `Departures.seeOff` says of calls that still run; `system` where the
  ///   kernel refuses the fence, and nothing of what needs it can be freed.
  ///
  /// - Parameter multicast: The one that was changed; nil for those that what is leaving has left.
  @inline(__always)
  func finish(
    _ multicast: Multicast?, patience: Departures.Patience = .endless
  ) -> Status {
    if released == nil && leaving.isEmpty && !hasRetired { return .ok }
    return finishSlowly(multicast, patience)
  }

  @inline(never)
  private func finishSlowly(_ multicast: Multicast?, _ patience: Departures.Patience) -> Status {
    Extras.release(released)
    if needsFence {
      guard Ticket.fence() else { return .system }
    }
    if hasRetired { reap(multicast) }
    if leaving.isEmpty { return .ok }
    return Departures.seeOff(leaving, patience: patience)
  }

  /// Others may be reading lists only of multicasts from which something is leaving.
  private func reap(_ multicast: Multicast?) {
    if let multicast { return multicast.flush() }
    var last: UInt32? = nil
    for registration in leaving where registration.owner != last {
      last = registration.owner
      Multicast(slot: registration.owner).flush()
    }
  }
}
