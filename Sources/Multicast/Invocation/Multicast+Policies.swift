import MulticastHeader

/// Invocations of multicasts with policies.
extension Multicast {
  /// Invokes the multicast according to its policies. Called by an invocation without options that
  /// has found policies.
  func invokeWithPolicies(_ call: AnyCall) -> Int64 {
    if let visit = call.visit { return self.visit(visit, orUndo: nil) }
    var (owned, outcome) = (Payload?.none, multicast_outcome())
    return invokeWithPolicies(InvocationOptions(call.invocation), &owned, &outcome)
  }

  /// Invokes the multicast according to its policies.
  ///
  /// - Parameter owned: The payload if the caller has handed it over, otherwise nil. This function
  ///   takes over the payload.
  /// - Returns: the number of delegates that were called or queued, or a negative status code.
  func invokeWithPolicies(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout multicast_outcome
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      owned?.release()
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    do throws(Status) {
      let rules = try self.rules()
      if rules.isVisitOnly { throw .state }
      // Even outside all calls, this thread may have deferred invocations, because a payload's
      // release function that runs between two of them may have started this invocation.
      if rules.reentry != .recurse
        && (isInvoked(on: thread) || Deferrals.find(handle, on: thread) != nil)
      {
        if rules.reentry == .refuse { throw .state }
        try postpone(options, &owned, isLatest: rules.reentry == .latest, on: thread)
        outcome.queued = 1
        if options.isWaiting { outcome.unfinished = 1 }
        return 0
      }
    } catch {
      owned?.release()
      return error.count
    }
    let count = dispatchWithPolicies(options, &owned, &outcome, on: thread)
    invokeDeferred(on: thread)
    return count
  }

  /// Invokes the multicast now. If the multicast has a replay, keeps the invocation first.
  ///
  /// - Parameter owned: Like the parameter `owned` of `invokeWithPolicies`.
  func dispatchWithPolicies(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout multicast_outcome,
    on thread: ThreadRecord
  ) -> Int64 {
    var count: Int64
    do throws(Status) {
      let hasReplay = try rules().hasReplay
      let number = hasReplay ? try keep(options, &owned, on: thread) : .max
      count = dispatch(options, &owned, &outcome, number: number)
    } catch {
      count = error.count
    }
    owned?.release()  //~ receipt_released_twice
    return count
  }

  /// Keeps an invocation that is about to begin.
  ///
  /// - Parameter owned: The payload if the caller has handed it over, otherwise nil. Receives the
  ///   copy if the payload must be copied.
  /// - Returns: the number of the invocation.
  func keep(
    _ options: InvocationOptions, _ owned: inout Payload?, on thread: ThreadRecord
  ) throws(Status) -> UInt {
    // The invocation must not fail after it has been kept.
    guard thread.hasRoom else { throw .limit }
    let kept = try KeptInvocation.make(options, &owned)
    let stripe = self.stripe
    stripe.lock()
    while isCurrent, let slow = replay.slowRun() {
      let (thread, number) = (slow.storage.pointee.thread, slow.storage.pointee.number)
      stripe.unlock()
      let isOver = slow.waitForEnd(on: thread, number)
      stripe.lock()
      if !isOver { break }
    }
    guard isCurrent else {
      stripe.unlock()
      Allocator.free(kept)
      throw .invalidHandle
    }
    owned?.retain()  //~ kept_payload_not_retained
    var payloads = ReleasedPayloads()
    let number = replay.keep(kept, &payloads)
    stripe.unlock()
    payloads.cleanUp()
    return number
  }
}
