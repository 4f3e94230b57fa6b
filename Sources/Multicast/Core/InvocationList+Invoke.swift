import CMulticast
import MulticastShims
import Synchronization

extension InvocationList {
  /// The loop of every invocation, for as long as it meets nothing unusual.
  ///
  /// Before a call the frame names the delegate, and only then is its state looked at; after the
  /// call the name goes, and the state is looked at again. `Departures` has the other side.
  ///
  /// - Parameter frame: Keeps this list from being freed.
  /// - Returns: how many delegates were called.
  @inline(__always)
  func invoke<C: Call>(
    _ call: C, in frame: UnsafeMutablePointer<Frame>, asymmetric: Bool
  ) -> Int64 {
    // Acquire: pairs with `publish`. What is added from here on is not called.
    let count = Int(header.pointee.count.load(ordering: .acquiring))
    var entry = entries
    let end = shims_keep(entry + count).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
    var progress = Progress.goesOn
    while entry != end {
      progress = Self.callPlain(call, entry, in: frame, asymmetric: asymmetric)
      if progress != .goesOn { break }
      entry += 1
      if entry == end { break }
      // Two in each round: jumping back is a good part of what a delegate costs.
      progress = Self.callPlain(call, entry, in: frame, asymmetric: asymmetric)
      if progress != .goesOn { break }
      entry += 1
    }
    switch progress {
    case .goesOn: return Self.number(of: entry, in: frame)
    case .stops: return Self.number(of: entry, in: frame) &+ 1
    case .isSpecial: return Self.invokeRest(call, from: entry, to: end, in: frame, asymmetric)
    }
  }

  /// How many entries of the list that is being read stand before this one. The frame tells which
  /// list that is: in the loop there is no register to keep it in.
  @inline(__always) private static func number(
    of entry: UnsafeMutablePointer<Entry>, in frame: UnsafeMutablePointer<Frame>
  ) -> Int64 {
    let list = frame.pointee.list.load(ordering: .relaxed) &+ UInt(headerSize)
    let distance = UInt(bitPattern: entry) &- list
    return Int64(truncatingIfNeeded: distance / UInt(MemoryLayout<Entry>.stride))
  }

  private enum Progress { case goesOn, stops, isSpecial }

  /// Calls a delegate that is called as it is: not dead, paused, weak, or called once or later.
  @inline(__always)
  private static func callPlain<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, in frame: UnsafeMutablePointer<Frame>,
    asymmetric: Bool
  ) -> Progress {
    guard isPlain(entry) else { return .isSpecial }
    frame.pointee.delegate.store(entry.pointee.token, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    guard isPlain(entry) else { return .isSpecial }
    let goesOn = call(entry.pointee.function, entry.pointee.context)
    // Release: whatever the delegate did happened before a remover finds the name gone.
    frame.pointee.delegate.store(0, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    if _slowPath(isDead(entry)) { Departures.attend(entry.pointee.token) }
    return goesOn ? .goesOn : .stops
  }

  @inline(__always) private static func isPlain(_ entry: UnsafeMutablePointer<Entry>) -> Bool {
    _fastPath(entry.pointee.state.load(ordering: .relaxed) & State.special == 0)
  }

  /// Goes on at a delegate that is not called as it is.
  ///
  /// - Returns: how many delegates were called, with those before that one.
  @inline(never)
  private static func invokeRest<C: Call>(
    _ call: C, from first: UnsafeMutablePointer<Entry>, to end: UnsafeMutablePointer<Entry>,
    in frame: UnsafeMutablePointer<Frame>, _ asymmetric: Bool
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
    if frame.pointee.payload.load(ordering: .relaxed) != 0 { letGo(of: frame) }
    return called
  }

  @inline(never)
  private static func letGo(of frame: UnsafeMutablePointer<Frame>) {
    let payload = frame.pointee.payload.load(ordering: .relaxed)
    frame.pointee.payload.store(0, ordering: .relaxed)
    Delivery.letGo.unsafelyUnwrapped(UnsafeMutableRawPointer(bitPattern: payload).unsafelyUnwrapped)
  }

  /// What came of one delegate.
  private struct Outcome {
    var isCalled = false
    var goesOn = true
  }

  /// A delegate that is dead, paused, weak, wants some events alone, is called once or later.
  @inline(never)
  private static func callSpecial<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, in frame: UnsafeMutablePointer<Frame>,
    _ asymmetric: Bool
  ) -> Outcome {
    // A name that is there already is taken away below, like any other.
    let isNamed = frame.pointee.delegate.load(ordering: .relaxed) != 0
    let state = entry.pointee.state.load(ordering: .relaxed)
    var outcome = Outcome()
    if !isNamed && state & (State.dead | State.paused) != 0 { return outcome }

    let token = entry.pointee.token
    var queue: UnsafeMutableRawPointer? = nil
    frame.pointee.delegate.store(token, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    if isDue(entry, call) {
      let registration = Registration(index: Handle.index(of: token))
      if C.isQueued && state & State.queued != 0 {
        queue = registration.storage.pointee.extras.unsafelyUnwrapped.pointee.queue
      } else {
        outcome.isCalled = registration.callNamed(
          token, context: entry.pointee.context, isOnce: state & State.once != 0
        ) { context in
          outcome.goesOn = call(entry.pointee.function, context)
        }
      }
    }
    frame.pointee.delegate.store(0, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    if isDead(entry) { Departures.attend(token) }
    // Not named any more: this may wait for room, and a remover is not to wait for that.
    if let queue { outcome.isCalled = call.queue(token, in: queue, frame) }
    return outcome
  }

  /// The extras are there: the delegate is named, so who removes it does not free them yet.
  private static func isDue<C: Call>(_ entry: UnsafeMutablePointer<Entry>, _ call: C) -> Bool {
    let state = entry.pointee.state.load(ordering: .relaxed)
    if state & (State.dead | State.paused) != 0 { return false }
    if state & State.filtered == 0 { return true }
    let registration = Registration(index: Handle.index(of: entry.pointee.token))
    return call.isWanted(registration.storage.pointee.extras.unsafelyUnwrapped.pointee.events)
  }
}
