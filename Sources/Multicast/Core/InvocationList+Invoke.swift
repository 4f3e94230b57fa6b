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
    return Int64(entry - entries &- passedOver)
  }

  /// What came of one delegate.
  private struct Outcome {
    var isCalled = false
    var goesOn = true
  }

  /// A delegate that is dead, paused, weak, wants some events alone, or is called once.
  @inline(never)
  private func callSpecial<C: Call>(
    _ call: C, _ entry: UnsafeMutablePointer<Entry>, in frame: UnsafeMutablePointer<Frame>,
    _ asymmetric: Bool
  ) -> Outcome {
    // A name that is there already is taken away below, like any other.
    let isNamed = frame.pointee.delegate.load(ordering: .relaxed) != 0
    let state = entry.pointee.state.load(ordering: .relaxed)
    if !isNamed && state & (State.dead | State.paused) != 0 { return Outcome() }

    let token = entry.pointee.token
    var outcome = Outcome()
    let multicast = Multicast(slotOf: header.pointee.owner).unsafelyUnwrapped
    frame.pointee.delegate.store(token, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    if isDue(entry, call) {
      let state = entry.pointee.state.load(ordering: .relaxed)
      let locked = lock(entry, state)
      // Locking may have removed it, or taken so long that somebody else has.
      let isToGo = locked.isDead || state & State.once != 0
      let isOurs = isToGo ? multicast.claim(token) : !Self.isDead(entry)
      if isOurs && !locked.isDead {
        outcome.isCalled = true
        outcome.goesOn = call(entry.pointee.function, locked.context)
      }
      if !locked.isDead { locked.unlock?(locked.context) }
    }
    frame.pointee.delegate.store(0, ordering: .releasing)
    Fence.light(asymmetric: asymmetric)
    if Self.isDead(entry) { Departures.attend(token) }
    return outcome
  }

  /// What a delegate is called with.
  private struct Locked {
    var context: UnsafeMutableRawPointer?
    var unlock: Extras.Unlock? = nil
    var isDead = false
  }

  /// Locks the context of a delegate that counts references itself. The extras are read before: from
  /// the call on, the delegate may be removed by itself.
  private func lock(_ entry: UnsafeMutablePointer<Entry>, _ state: UInt32) -> Locked {
    var locked = Locked(context: entry.pointee.context)
    guard state & State.weak != 0 else { return locked }
    let extras = extras(entry)
    locked.unlock = extras.pointee.unlock
    locked.context = extras.pointee.lock.unsafelyUnwrapped(entry.pointee.context)
    locked.isDead = locked.context == nil
    return locked
  }

  private func extras(_ entry: UnsafeMutablePointer<Entry>) -> UnsafeMutablePointer<Extras> {
    let registration = Registration(index: Handle.index(of: entry.pointee.token))
    return registration.storage.pointee.extras.unsafelyUnwrapped
  }

  /// The extras are there: the delegate is named, so who removes it does not free them yet.
  private func isDue<C: Call>(_ entry: UnsafeMutablePointer<Entry>, _ call: C) -> Bool {
    let state = entry.pointee.state.load(ordering: .relaxed)
    if state & (State.dead | State.paused) != 0 { return false }
    if state & State.filtered == 0 { return true }
    return call.isWanted(extras(entry).pointee.events)
  }
}

extension Multicast {
  /// Removes a delegate for the one invocation that names it and may call it, or has found it dead.
  /// As it is named, the rest is left for when the name is taken away.
  ///
  /// - Returns: false where another invocation, or a remover, came first.
  fileprivate func claim(_ token: UInt64) -> Bool {
    var cleanup = Cleanup()
    let stripe = self.stripe
    stripe.lock()
    let registration = Registration(index: Handle.index(of: token))
    guard isCurrent, registration.id == token, let list else {
      stripe.unlock()
      return false
    }
    unlink(registration.storage.pointee.link, of: list, &cleanup)
    tidy(&cleanup)
    stripe.unlock()
    _ = cleanup.finish(self, patience: .none)
    return true
  }
}
