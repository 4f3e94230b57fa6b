extension Multicast {
  /// Waits for calls of selected delegates that were removed already.
  func settle(_ selection: Selection, after cleanup: Cleanup) -> Status {
    // Most often there is none; and that is cheaper to know than a fence.
    guard hasDead(selection) else { return .ok }
    return Departures.settle(after: cleanup) { multicast, token in
      multicast == address && !Registration.isLive(token) && hasDead(selection, token: token)
    }
  }

  /// Whether a list that an invocation may be reading has a dead delegate that is selected.
  private func hasDead(_ selection: Selection, token: UInt64? = nil) -> Bool {
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
