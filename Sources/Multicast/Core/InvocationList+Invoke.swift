import CMulticast
import Synchronization

extension InvocationList {
  // Functions of their own, so that the loop has all registers to itself.

  @inline(never)
  func invokeAsymmetric<C: Call>(_ call: C, in frame: UnsafeMutablePointer<Frame>) -> Int64 {
    invoke(call, in: frame, asymmetric: true)
  }

  @inline(never)
  func invokeSymmetric<C: Call>(_ call: C, in frame: UnsafeMutablePointer<Frame>) -> Int64 {
    invoke(call, in: frame, asymmetric: false)
  }

  /// The loop of every invocation.
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
    var passedOver = 0
    var entry = entries
    let end = entry + count
    while entry != end {
      let isPlain = entry.pointee.state.load(ordering: .relaxed) & State.special == 0
      if _fastPath(isPlain) {
        let token = entry.pointee.token
        frame.pointee.delegate.store(token, ordering: .releasing)
        Fence.light(asymmetric: asymmetric)
        if _fastPath(entry.pointee.state.load(ordering: .relaxed) & State.special == 0) {
          let goesOn = call(entry.pointee.function, entry.pointee.context)
          // Release: whatever the delegate did happened before a remover finds the name gone.
          frame.pointee.delegate.store(0, ordering: .releasing)
          Fence.light(asymmetric: asymmetric)
          if Self.isDead(entry) { Departures.attend(token) }
          entry += 1
          if goesOn { continue } else { break }
        }
      }
      let outcome = callSpecial(call, entry, in: frame, asymmetric)
      entry += 1
      if !outcome.isCalled { passedOver &+= 1 }
      if !outcome.goesOn { break }
    }
    if frame.pointee.payload.load(ordering: .relaxed) != 0 { letGo(of: frame) }
    return Int64(entry - entries &- passedOver)
  }

  @inline(never)
  private func letGo(of frame: UnsafeMutablePointer<Frame>) {
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
  private func callSpecial<C: Call>(
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
    if Self.isDead(entry) { Departures.attend(token) }
    // Not named any more: this may wait for room, and a remover is not to wait for that.
    if let queue { outcome.isCalled = call.queue(token, in: queue, frame) }
    return outcome
  }

  /// The extras are there: the delegate is named, so who removes it does not free them yet.
  private func isDue<C: Call>(_ entry: UnsafeMutablePointer<Entry>, _ call: C) -> Bool {
    let state = entry.pointee.state.load(ordering: .relaxed)
    if state & (State.dead | State.paused) != 0 { return false }
    if state & State.filtered == 0 { return true }
    let registration = Registration(index: Handle.index(of: entry.pointee.token))
    return call.isWanted(registration.storage.pointee.extras.unsafelyUnwrapped.pointee.events)
  }
}
