import MulticastHeader
import MulticastShims
import Synchronization

extension InvocationList {
  /// The loop of a biased invocation, as long as every delegate is plain.
  ///
  /// Before a call the invocation sets its hazard to the registration, and only then looks at the
  /// state of the entry. After the call it clears the hazard, and looks at the state again.
  /// `Removal` has the other side.
  ///
  /// - Parameter frame: Keeps this list from being freed.
  /// - Returns: how many delegates were called.
  @inline(__always)
  func invoke<C: Call>(_ call: C, in frame: Frame) -> Int64 {
    var entry = address
    let end = self.end
    var progress = Progress.goesOn
    while entry != end {
      progress = Self.callPlain(call, entry, in: frame, asymmetric: true)
      if progress != .goesOn { break }
      entry += 1
      if entry == end { break }
      // Two in each round: the jump back is a good part of the cost of a delegate.
      progress = Self.callPlain(call, entry, in: frame, asymmetric: true)
      if progress != .goesOn { break }
      entry = shims_keep(entry + 1).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
    }
    switch progress {
    case .goesOn: return Self.number(of: entry, in: frame)
    case .stops: return Self.number(of: entry, in: frame) &+ 1
    case .isSpecial: return Self.invokeRest(call, from: entry, to: end, in: frame, true)
    }
  }

  /// Behind the last entry. Acquire: pairs with `publish`. Entries that are added from here on are
  /// not called.
  @inline(__always) private var end: UnsafeMutablePointer<Entry> {
    let count = Int(header.count.load(ordering: .acquiring))  // order: entries
    return shims_keep(address + count).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
  }

  /// The loop of a fenced invocation. A full fence is expensive, so there is one for each delegate:
  /// the hazard of the next delegate replaces that of the last one, and is followed by a look at
  /// the states of both.
  @inline(never)
  @_optimize(speed)
  func invokeFenced<C: Call>(_ call: C, in frame: Frame) -> Int64 {
    let end = self.end
    var entry = address
    // The delegate that was called, and has the hazard.
    var last: UnsafeMutablePointer<Entry>? = nil
    var goesOn = true
    while goesOn && entry != end && Self.isPlain(entry) {
      frame.setHazard(entry.pointee.token)
      Fence.full()
      //~ no_look_after_fenced_call
      if let last, _slowPath(Self.isDead(last)) { Self.finish(last, before: entry, in: frame) }
      last = entry
      guard Self.isPlain(entry) else { break }  //~ no_check_after_fenced_hazard
      goesOn = call(entry.pointee.function, entry.pointee.context)
      entry += 1
    }
    if let last {
      frame.clearHazard()
      Fence.full()
      if Self.isDead(last) { PendingRemovals.callDidReturn(last.pointee.token) }
    }
    if goesOn && entry != end {
      return Self.invokeRest(call, from: entry, to: end, in: frame, false)
    }
    return Self.number(of: entry, in: frame)
  }

  /// Does what is to be done after the call of a delegate that is dead now. The hazard is that of
  /// the next one already; but that is not called yet, and nothing is to wait for it meanwhile.
  ///
  /// `callDidReturn` takes the waits' lock, and wakes the threads that have seen that hazard.
  @inline(never)
  private static func finish(
    _ last: UnsafeMutablePointer<Entry>, before next: UnsafeMutablePointer<Entry>, in frame: Frame
  ) {
    frame.clearHazard()
    PendingRemovals.callDidReturn(last.pointee.token)
    frame.setHazard(next.pointee.token)
    Fence.full()
  }

  /// How many entries are before this one in the list that is being read. The frame has the address
  /// of that list: the loop has no register left to keep it in.
  @inline(__always) private static func number(
    of entry: UnsafeMutablePointer<Entry>, in frame: Frame
  ) -> Int64 {
    let distance = UInt(bitPattern: entry) &- frame.list
    return Int64(truncatingIfNeeded: distance / UInt(MemoryLayout<Entry>.stride))
  }

  private enum Progress { case goesOn, stops, isSpecial }

  /// Calls a delegate that is plain: not dead, paused, weak, filtered, queued or called once.
  @inline(__always)
  private static func callPlain<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, in frame: Frame, asymmetric: Bool
  ) -> Progress {
    guard isPlain(entry) else { return .isSpecial }
    frame.setHazard(entry.pointee.token)
    Fence.light(asymmetric: asymmetric)
    guard isPlain(entry) else { return .isSpecial }  //~ no_check_after_hazard
    let goesOn = call(entry.pointee.function, entry.pointee.context)
    frame.clearHazard()
    Fence.light(asymmetric: asymmetric)
    //~ no_look_after_call
    if _slowPath(isDead(entry)) { PendingRemovals.callDidReturn(entry.pointee.token) }
    return goesOn ? .goesOn : .stops
  }

  @inline(__always) private static func isPlain(_ entry: UnsafeMutablePointer<Entry>) -> Bool {
    _fastPath(entry.pointee.state.load(ordering: .relaxed) & State.special == 0)
  }

  /// Continues at a delegate that is not plain.
  ///
  /// - Returns: how many delegates were called, those before that one included.
  @inline(never)
  @_optimize(speed)
  private static func invokeRest<C: Call>(
    _ call: C, from first: UnsafeMutablePointer<Entry>, to end: UnsafeMutablePointer<Entry>,
    in frame: Frame, _ asymmetric: Bool
  ) -> Int64 {
    var called = number(of: first, in: frame)
    var entry = first
    var outcome = Outcome()
    repeat {
      outcome = callSpecial(call, entry, in: frame, asymmetric)
      if outcome.isCalled { called &+= 1 }
      entry += 1
      while outcome.goesOn && entry != end {
        let progress = callPlain(call, entry, in: frame, asymmetric: asymmetric)
        if progress == .isSpecial { break }
        called &+= 1
        entry += 1
        outcome.goesOn = progress == .goesOn
      }
    } while outcome.goesOn && entry != end
    call.finish(frame)
    return called
  }

  /// The result of one delegate.
  struct Outcome {
    var isCalled = false
    var goesOn = true
  }

  /// Calls a delegate that may not be plain, if it is to be called.
  @inline(never)
  @_optimize(speed)
  static func callSpecial<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, in frame: Frame, _ asymmetric: Bool
  ) -> Outcome {
    // If the hazard is set already, it has to be cleared below.
    let hasHazard = !frame.hazard.isNone
    let state = entry.pointee.state.load(ordering: .relaxed)
    var outcome = Outcome()
    if !hasHazard && state & (State.dead | State.paused) != 0 { return outcome }

    let token = entry.pointee.token
    if C.isQueued && state & State.special == State.queued {
      outcome.isCalled = appendPlain(call, entry, token, in: frame, asymmetric)
      return outcome
    }
    var queue: UnsafeMutableRawPointer? = nil
    frame.setHazard(token)  //~ no_hazard_of_special_call
    Fence.light(asymmetric: asymmetric)
    if isDue(entry, call) {
      let registration = Registration(index: token.index)
      if C.isQueued && state & State.queued != 0 {
        queue = registration.knownDetails.pointee.queue
      } else {
        outcome.isCalled = registration.callProtected(
          token, context: entry.pointee.context, state
        ) { context in
          outcome.goesOn = call(entry.pointee.function, context)
        }
      }
    }
    frame.clearHazard()
    Fence.light(asymmetric: asymmetric)
    if isDead(entry) { PendingRemovals.callDidReturn(token) }  //~ no_look_after_special_call
    // Without the hazard: this may wait for room, and a removal must not wait for that.
    if let queue { outcome.isCalled = call.append(token, to: Queue(slot: queue), frame) }
    return outcome
  }

  /// Queues a call of a delegate that is not special otherwise. The same as in `callSpecial`, with
  /// fewer questions.
  @inline(__always)
  private static func appendPlain<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, _ token: Token, in frame: Frame,
    _ asymmetric: Bool
  ) -> Bool {
    var queue: UnsafeMutableRawPointer? = nil
    frame.setHazard(token)
    Fence.light(asymmetric: asymmetric)
    if entry.pointee.state.load(ordering: .relaxed) & State.special == State.queued {
      queue = Registration(index: token.index).details.unsafelyUnwrapped.pointee.queue
    }
    frame.clearHazard()
    Fence.light(asymmetric: asymmetric)
    if isDead(entry) { PendingRemovals.callDidReturn(token) }
    guard let queue else { return false }
    return call.append(token, to: Queue(slot: queue), frame)
  }

  /// Whether a delegate is to be called. The hazard protects the details from being freed.
  private static func isDue<C: Call>(_ entry: UnsafeMutablePointer<Entry>, _ call: C) -> Bool {
    let state = entry.pointee.state.load(ordering: .relaxed)
    if state & (State.dead | State.paused) != 0 { return false }
    if state & State.filtered == 0 { return true }
    let registration = Registration(index: entry.pointee.token.index)
    return call.wants(registration.knownDetails.pointee.events)
  }
}
