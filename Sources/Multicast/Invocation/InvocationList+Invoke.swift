import MulticastHeader
import MulticastShims
import Synchronization

extension InvocationList {
  /// The loop of a biased invocation, which continues as long as every delegate is plain. It is the
  /// most frequent operation of all.
  ///
  /// Each call follows the hazard protocol. The invocation sets its hazard, executes a light fence,
  /// and then checks the slot. After the call, it clears the hazard, executes another light fence,
  /// and checks the slot again. The other side is in `Removal`, which changes the slot, executes a
  /// heavy fence, and then checks the hazards (see `Fence`). So at least one side sees the other's
  /// store, both before and after the call.
  ///
  /// - Parameter frame: Names this list, so that it is not freed.
  /// - Returns: the number of called delegates.
  @inline(__always)
  func invoke<C: Call>(_ call: C, in frame: Frame) -> Int64 {
    var entry = address
    let end = self.end
    var progress = Progress.goesOn
    while entry != end {
      progress = Self.callPlain(call, entry, in: frame)
      if progress != .goesOn { break }
      entry += 1
      if entry == end { break }
      // Call two delegates per iteration, because the backward jump is a considerable part of a
      // call's cost.
      progress = Self.callPlain(call, entry, in: frame)
      if progress != .goesOn { break }
      entry = shims_keep(entry + 1).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
    }
    switch progress {
    case .goesOn: return Self.number(of: entry, in: frame)
    case .stops: return Self.number(of: entry, in: frame) &+ 1
    case .isSpecial: return Self.invokeRest(from: entry, to: end, in: frame, call)
    }
  }

  /// The address after the last entry. Acquire: pairs with the release in `publish`. The invocation
  /// does not call delegates added later.
  var end: Address {
    let count = Int(header.count.load(ordering: .acquiring))  // order: entries
    return shims_keep(address + count).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
  }

  /// The number of entries before the given entry. Reads the address of the list from the frame,
  /// because the loop has no register left for it.
  private static func number(of entry: Address, in frame: Frame) -> Int64 {
    let distance = UInt(bitPattern: entry) &- frame.list
    return Int64(truncatingIfNeeded: distance / UInt(MemoryLayout<Entry>.stride))
  }

  private enum Progress { case goesOn, stops, isSpecial }

  /// Calls a delegate that is live and plain.
  @inline(__always)
  private static func callPlain<C: Call>(
    _ call: C, _ entry: Address, in frame: Frame
  ) -> Progress {
    frame.setHazard(entry.pointee.token)  //~ no_hazard_of_call
    Fence.light(asymmetric: true)
    guard _fastPath(entry.pointee.isPlain) else { return .isSpecial }  //~ no_look_after_hazard
    let slot = entry.pointee.slot
    let goesOn = call(slot.pointee.function.unsafelyUnwrapped, slot.pointee.context)
    frame.clearHazard()
    Fence.light(asymmetric: true)
    if _slowPath(!entry.pointee.isPlain) { didReturn(entry.pointee) }  //~ no_look_after_call
    return goesOn ? .goesOn : .stops
  }

  /// Called after the call to a delegate that has been removed or paused in the meantime.
  @inline(never)
  private static func didReturn(_ entry: Entry) {
    if !entry.isLive { PendingRemovals.hazardDidEnd(entry) }
  }

  private static func invokeRest<C: Call>(
    from first: Address, to end: Address, in frame: Frame, _ call: C
  ) -> Int64 {
    AnyCall.with(call) { invokeRest(from: first, to: end, in: frame, $0) }
  }

  /// Continues with a delegate that is not plain and whose hazard has already been set.
  ///
  /// - Returns: the number of called delegates, including those before the first entry.
  @inline(never)
  private static func invokeRest(
    from first: Address, to end: Address, in frame: Frame, _ call: AnyCall
  ) -> Int64 {
    var walk = Walk(in: frame, .plain, after: first.pointee)
    let before = number(of: first, in: frame)
    return before &+ walk.run(call, from: first, to: end)
  }

  /// Calls every delegate.
  ///
  /// - Returns: the number of called delegates.
  func invoke(_ call: AnyCall, in frame: Frame, _ mode: Multicast.Mode) -> Int64 {
    var walk = Walk(in: frame, mode)
    if !mode.isWatched { return walk.run(call, from: address, to: end) }
    // Read the handle now, because the multicast may be destroyed during the calls.
    let multicast = Multicast(frame.target).handle.rawValue
    let invocation = call.invocation
    shims_probe_invoke_begin(
      multicast, UInt64(invocation.event), invocation.payload, invocation.size)
    let called = walk.run(call, from: address, to: end)
    shims_probe_invoke_end(multicast, UInt64(invocation.event), called)
    return called
  }
}
