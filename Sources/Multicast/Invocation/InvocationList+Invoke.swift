import MulticastHeader
import MulticastShims
import Synchronization

extension InvocationList {
  /// The loop of a biased invocation, as long as every delegate is plain: for what programs do most
  /// often.
  ///
  /// The hazard protocol of each call: the invocation sets its hazard, and only then looks at the
  /// slot. Afterwards it clears the hazard, and looks at the slot again. A removal changes the
  /// slot, and only then looks at the hazards: `Removal` has the other side. Each makes a fence in
  /// between: see `Fence`. So at least one of them sees the other, before the call and after it.
  ///
  /// - Parameter frame: Keeps this list from being freed.
  /// - Returns: how many delegates were called.
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
      // Two in each round: the jump back is a good part of the cost of a delegate.
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

  /// Behind the last entry. Acquire: pairs with `publish`. Entries that are added from here on are
  /// not called.
  var end: Address {
    let count = Int(header.count.load(ordering: .acquiring))  // order: entries
    return shims_keep(address + count).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
  }

  /// The number of entries before an entry. The frame has the address of the list: the loop has no
  /// register left for it.
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

  /// Called after the call of a delegate that is not plain any more: it was removed or paused.
  @inline(never)
  private static func didReturn(_ entry: Entry) {
    if !entry.isLive { PendingRemovals.hazardDidEnd(entry) }
  }

  private static func invokeRest<C: Call>(
    from first: Address, to end: Address, in frame: Frame, _ call: C
  ) -> Int64 {
    AnyCall.with(call) { invokeRest(from: first, to: end, in: frame, $0) }
  }

  /// Continues at a delegate that is not plain, and whose hazard is set.
  ///
  /// - Returns: how many delegates were called, also before the first entry.
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
  /// - Returns: how many were called.
  func invoke(_ call: AnyCall, in frame: Frame, _ mode: Multicast.Mode) -> Int64 {
    var walk = Walk(in: frame, mode)
    if !mode.isWatched { return walk.run(call, from: address, to: end) }
    // Read once: the multicast may be destroyed meanwhile.
    let multicast = Multicast(frame.target).handle.rawValue
    let invocation = call.invocation
    shims_probe_invoke_begin(
      multicast, UInt64(invocation.event), invocation.payload, invocation.size)
    let called = walk.run(call, from: address, to: end)
    shims_probe_invoke_end(multicast, UInt64(invocation.event), called)
    return called
  }
}
