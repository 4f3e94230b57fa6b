extension Registration {
  /// Calls the delegate of one registration, as an invocation of its multicast would.
  ///
  /// - Returns: 1 if it was called or queued, otherwise 0; or the number of a status.
  static func invoke(_ token: Token, _ call: AnyCall) -> Int64 {
    guard let registration = Registration(slotOf: token), registration.id == token else {
      return Status.invalidHandle.count
    }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    // From here on the slot may have another occupant, in another multicast: see `findEntry`.
    let multicast = Multicast(slot: registration.owner)
    guard multicast.handle.isOfMulticast else { return Status.invalidHandle.count }
    // A transport's delegate is called by the library alone.
    if multicast.handle.kind == .transport || call.isQueued && multicast.isVisitOnly {
      return Status.state.count
    }
    let count = registration.invoke(token, call, of: multicast, on: thread)
    multicast.invokeDeferred(on: thread)
    return count
  }

  private func invoke(
    _ token: Token, _ call: AnyCall, of multicast: Multicast, on thread: ThreadRecord
  ) -> Int64 {
    var isLive = false
    let count = multicast.withList(on: thread) { _, frame, mode in
      guard let entry = findEntry(token, of: multicast, frame) else { return 0 }
      isLive = true
      let outcome = InvocationList.call(call, entry, in: frame, mode)
      call.releasePayload(frame)
      return outcome.isCalled ? 1 : 0
    }
    return isLive || count == Status.limit.count ? count : Status.invalidHandle.count
  }

  /// The entry of a live registration, in the list that is current now.
  ///
  /// The frame is that of an invocation, and its thread is registered as an invoker. From here on
  /// it reads that list. The store is under the stripe's lock: a writer that replaces the list
  /// afterwards, under the same lock, sees it, and keeps the list.
  func findEntry(
    _ token: Token, of multicast: Multicast, _ frame: Frame
  ) -> InvocationList.Address? {
    let stripe = multicast.stripe
    stripe.lock()
    defer { stripe.unlock() }
    //~ token_not_compared
    guard id == token, owner == multicast.handle.index, let list = multicast.list else {
      return nil
    }
    frame.list = UInt(bitPattern: list.address)  //~ list_of_token_not_published
    return list.entry(place)
  }
}
