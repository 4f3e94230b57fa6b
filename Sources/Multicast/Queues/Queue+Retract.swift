extension Queue {
  /// Takes back the calls of a registration that is not live any more.
  ///
  /// From here on the head of the ring is closed. A call of it that was taken out before had its
  /// hazard before that. So a remover that looks at the frames afterwards finds it, and no other
  /// call will begin. When it returns, the thread that runs the queue finds the head closed, and
  /// looks whether the registration is live.
  func retract(
    _ details: UnsafeMutablePointer<RegistrationDetails>, _ released: inout ReleasedPayloads
  ) {
    lock.lock()
    // The queue may have been destroyed, and the slot have another occupant.
    let membership = RegistrationDetails.membership(of: details, .recipient)
    if membership.pointee.lifetime == state.recipients {  //~ calls_not_retracted
      state.ring.close()
      let before = state.ring.count
      let taken = state.ring.takeAll(of: details, &released)
      state.statistics.retracted &+= taken
      if taken > 0 { updateDescriptor(from: before) }
      checkInvariants()
    }
    // There is room now, or the delegate of the call that waits for it is gone.
    let isRoomAwaited = state.isRoomAwaited
    lock.unlock()
    if isRoomAwaited { wakeAllForRoom() }
  }
}
