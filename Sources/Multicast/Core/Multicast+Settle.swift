import CMulticast

extension Multicast {
  /// Waits for calls of selected delegates that were removed already.
  func settle(_ selection: Selection, after cleanup: Cleanup) -> Status {
    // Most often there is none; and that is cheaper to know than a fence.
    let isInside = cleanup.thread?.isInside ?? false
    let mayBeCalled = (isInside || !cleanup.isAlone) && hasDead(selection)
    guard mayBeCalled || Delivery.isInUse else { return .ok }
    let needsFence = mayBeCalled && !cleanup.isAlone
    return Departures.settle(after: cleanup, needsFence: needsFence) { multicast, token in
      if Registration.isLive(token) { return false }
      if multicast == address { return mayBeCalled && hasDead(selection, token: token) }
      return Frame.isRun(multicast) && isLeaving(token, selection)
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

  /// Whether a delegate whose calls are queued is selected, and removed but still called. What its
  /// list was is of no use: a queue holds none.
  private func isLeaving(_ token: UInt64, _ selection: Selection) -> Bool {
    guard let registration = Registration(slotOf: token),
      registration.owner == Handle.index(of: handle)
    else { return false }
    stripe.lock()
    defer { stripe.unlock() }
    guard registration.id == Handle.change(token, to: Handle.Kind.leaving),
      let extras = registration.storage.pointee.extras, extras.pointee.multicast == handle
    else { return false }
    return selection.includes(
      multicast_delegate(function: extras.pointee.function, context: extras.pointee.context))
  }
}
