extension Queue {
  /// Takes back the calls of a registration that is not live any more.
  ///
  /// A call of it that is running got its hazard under this lock, before. So a remover that looks
  /// at the frames afterwards finds it, and no other call will begin.
  func retract(
    _ details: UnsafeMutablePointer<RegistrationDetails>, _ released: inout ReleasedPayloads
  ) {
    lock.lock()
    // The queue may have been destroyed, and the slot have another occupant.
    let membership = RegistrationDetails.membership(of: details, .recipient)
    if membership.pointee.lifetime == state.recipients {  //~ calls_not_retracted
      let before = state.ring.count
      let taken = state.ring.takeAll(of: details, &released)
      state.statistics.retracted &+= taken
      if taken > 0 { updateDescriptor(from: before) }
      checkInvariants()
    }
    let hasBlocked = state.blockedCount > 0
    lock.unlock()
    if hasBlocked { Waits.wake() }
  }
}
