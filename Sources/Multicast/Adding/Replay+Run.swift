import MulticastHeader
import MulticastShims

extension Multicast {
  /// Adds delegates, and replays the kept invocations to them. Returns the same result as `add`.
  func addAndReplay(_ new: inout NewDelegates) throws(Status) -> Bool {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { throw .outOfMemory }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    guard thread.hasRoom else { throw .limit }
    let run = try Replay.Run(Int(new.count), self, on: thread)
    let tokens = new.tokens
    new.tokens = tokens ?? run.tokens
    new.replay = run
    defer {
      new.tokens = tokens
      run.deallocate()
    }
    let isAdded = try add(&new)
    if isAdded {
      _ = withList(on: thread) { _, frame, mode in run.run(in: frame, mode) }
      invokeDeferred(on: thread)
    }
    return isAdded
  }

  /// Begins the replay for delegates that have just been added. The caller holds the stripe's lock.
  func begin(_ run: Replay.Run, _ new: NewDelegates) {
    if let tokens = new.tokens {
      shims_copy(run.tokens, tokens, Int(new.count) &* MemoryLayout<multicast_token>.stride)
    }
    replay.begin(run.storage)
  }
}

extension Replay.Run {
  /// Replays every kept invocation to the delegates, one invocation after another.
  ///
  /// - Returns: the number of calls.
  func run(in frame: Frame, _ mode: Multicast.Mode) -> Int64 {
    let multicast = storage.pointee.multicast
    var (called, hasLive): (Int64, Bool) = (0, true)
    while let kept = multicast.advance(self, goesOn: hasLive) {
      kept.payload?.pass(to: frame)
      var dispatch = Dispatch(InvocationOptions(kept.invocation))
      hasLive = withUnsafeMutablePointer(to: &dispatch) { dispatch in
        AnyCall.with(AnyCall.Details(kept.invocation, dispatch)) { call in
          self.call(call, in: frame, mode, &called)
        }
      }
      Payload.release(of: frame)
    }
    return called
  }

  /// - Returns: whether at least one of the delegates is still registered.
  private func call(
    _ call: AnyCall, in frame: Frame, _ mode: Multicast.Mode, _ called: inout Int64
  ) -> Bool {
    var hasLive = false
    var walk = Walk(in: frame, mode)
    for index in 0..<storage.pointee.count {
      let token = Token(tokens[index].id)
      let registration = Registration(index: token.index)
      if !registration.id.isLive(as: token) { continue }
      hasLive = true
      let entry = InvocationList.Entry(slot: registration.storage, token: token)
      if walk.step(call, entry).isCalled { called &+= 1 }
    }
    walk.finish(call)
    return hasLive
  }
}
