import Synchronization

/// Waiting for what others removed.
extension Multicast {
  /// Waits for calls on other threads of selected delegates that were removed already, by somebody
  /// who did not wait or is just doing it.
  func settle(_ selection: Selection, _ cleanup: Cleanup) -> Status {
    let thread = cleanup.thread
    // Whoever removed them may not have had the heavy fence yet; ours, if any, has served for all.
    if !cleanup.needsFence {
      guard hasDead(selection) else { return .ok }
      guard Ticket.fence() else { return .system }
    }
    var status = Status.ok
    for record in ThreadRegistry.all {
      if record == thread { continue }
      var depth: UInt32 = 0
      while depth < ThreadRecord.frameLimit {
        let frame = record.frame(depth)
        let invoked = frame.pointee.multicast.load(ordering: .acquiring)
        if invoked == 0 { break }
        let token = frame.pointee.delegate.load(ordering: .acquiring)
        if invoked == address && token != 0 && hasDead(selection, token: token) {
          let outcome = Departures.wait(
            for: token, removed: nil, by: thread, patience: .endless)
          if outcome != .ok { status = outcome }
        }
        depth &+= 1
      }
    }
    return status
  }

  /// Whether a list that an invocation may be reading has a dead delegate that is selected.
  private func hasDead(_ selection: Selection, token: UInt64? = nil) -> Bool {
    if let token, Registration.isLive(token) { return false }
    stripe.lock()
    defer { stripe.unlock() }
    var isFound = false
    let look = { (list: InvocationList) in
      var position: UInt32 = 0
      while position < list.count && !isFound {
        let entry = list.entry(position)
        isFound =
          InvocationList.isDead(entry) && selection.includes(entry)
          && (token == nil || token == entry.pointee.token)
        position &+= 1
      }
    }
    if let list, list.header.pointee.owner == handle { look(list) }
    forEachRetired(look)
    return isFound
  }
}
