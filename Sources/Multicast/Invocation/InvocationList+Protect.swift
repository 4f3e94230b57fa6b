/// The hazard protocol: one call, or one look at what belongs to a registration.
///
/// The invocation sets its hazard, and only then looks at the state of the entry. Afterwards it
/// clears the hazard, and looks at the state again. A removal marks the entry, and only then looks
/// at the hazards: `Removal` has the other side. Each makes a fence in between: see `Fence` and
/// `Bias`. So at least one of them sees the other, before the call and after it.
extension InvocationList {
  /// Protects a registration by this thread's hazard while something is done with it.
  ///
  /// - Parameters:
  ///   - entry: In a list that the frame keeps from being freed.
  ///   - isDue: Looks at the state, with the hazard set.
  ///   - body: Called if it is due. The registration is not reclaimed meanwhile.
  /// - Returns: nil if it was not due.
  @inline(__always)
  static func protect<Fence: CallFence, Result>(
    _ entry: Address, in frame: Frame, _ fence: Fence.Type,
    if isDue: @autoclosure () -> Bool, _ body: () -> Result
  ) -> Result? {
    let result = protectDue(entry, in: frame, fence, if: isDue(), body)
    if result == nil { endProtection(of: entry, in: frame, fence) }
    return result
  }

  /// The same, but the hazard stays if it is not due: for the loop of plain delegates, which has no
  /// register left to continue after a call that clears the hazard here.
  @inline(__always)
  static func protectDue<Fence: CallFence, Result>(
    _ entry: Address, in frame: Frame, _ fence: Fence.Type,
    if isDue: @autoclosure () -> Bool, _ body: () -> Result
  ) -> Result? {
    frame.setHazard(entry.pointee.token)  //~ no_hazard_of_call
    Fence.make()
    guard isDue() else { return nil }  //~ no_look_after_hazard
    let result = body()
    endProtection(of: entry, in: frame, fence)
    return result
  }

  /// Clears the hazard of a delegate, and looks whether a removal has seen it.
  @inline(__always)
  static func endProtection<Fence: CallFence>(
    of entry: Address, in frame: Frame, _ fence: Fence.Type
  ) {
    frame.clearHazard()
    Fence.make()
    //~ no_look_after_call
    if _slowPath(isDead(entry)) { PendingRemovals.callDidReturn(entry.pointee.token) }
  }
}
