import MulticastHeader
import MulticastShims
import Synchronization

/// `multicast_enumerate`: what each registration is passed to. `multicast_prune`: nothing is
/// passed. Or an add that replays.
struct Enumeration {
  let function: multicast_enumerator?
  let context: UnsafeMutableRawPointer?
  var replay: Replay.Run? = nil

  struct Progress {
    var passed: Int64 = 0
    var removed: Int64 = 0
    var goesOn = true
  }
}

extension Multicast {
  /// Passes every registration, and removes those whose context is dead.
  ///
  /// - Returns: how many were passed, or, if nothing is passed, removed; or the number of a status.
  func enumerate(_ enumeration: Enumeration) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    let count = withList(on: thread) { list, frame, mode in
      if let replay = enumeration.replay { return replay.run(in: frame, mode) }
      return mode.isBiased
        ? list.enumerate(enumeration, frame, LightFence.self)
        : list.enumerate(enumeration, frame, FullFence.self)
    }
    invokeDeferred(on: thread)
    return count
  }
}

extension InvocationList {
  /// A hazard protects each registration while it is passed, as in a visit.
  fileprivate func enumerate<Fence: CallFence>(
    _ enumeration: Enumeration, _ frame: Frame, _ fence: Fence.Type
  ) -> Int64 {
    // Acquire: pairs with `publish`, as in an invocation.
    let count = header.count.load(ordering: .acquiring)  // order: entries
    var result = Enumeration.Progress()
    var position: UInt32 = 0
    while position < count && result.goesOn {
      let entry = self.entry(position)
      position &+= 1
      let state = entry.pointee.state.load(ordering: .relaxed)
      if state & State.dead != 0 { continue }
      if enumeration.function == nil && state & (State.weak | State.shared) == 0 { continue }
      _ = Self.protect(entry, in: frame, fence, if: !Self.isDead(entry)) {
        let token = entry.pointee.token
        Registration(index: token.index).pass(
          token, entry.pointee.context, isShared: state & State.shared != 0, enumeration, &result)
      }
    }
    return enumeration.function == nil ? result.removed : result.passed
  }
}

extension Registration {
  /// Passes a registration that this thread's hazard protects, unless it was removed meanwhile; or
  /// removes it, if its context is dead.
  fileprivate func pass(
    _ token: Token, _ context: UnsafeMutableRawPointer?, isShared: Bool,
    _ enumeration: Enumeration, _ progress: inout Enumeration.Progress
  ) {
    // Read before: the lock may remove the registration.
    let own = ContextLock(self, isShared: isShared)
    if isShared && id != token { return }
    var known = multicast_registration()
    known.struct_size = UInt32(MemoryLayout<multicast_registration>.size)
    Lock.checkNoneIsHeld()
    if let lock = own.lock {
      known.strong = lock(context)
      if known.strong == nil {
        if Multicast.claim(token) { progress.removed &+= 1 }
        return
      }
    }
    if let function = enumeration.function, write(ifLive: token, to: &known) {
      progress.passed &+= 1
      progress.goesOn = function(enumeration.context, &known)
    }
    own.unlock?(known.strong)
  }

  private func write(ifLive token: Token, to known: inout multicast_registration) -> Bool {
    let stripe = Stripe(of: owner)
    stripe.lock()
    defer { stripe.unlock() }
    guard id == token else { return false }
    write(token, to: &known)
    return true
  }
}

extension Registration {
  /// Copies what there is to know about a registration.
  static func read(
    _ token: Token, into out: UnsafeMutablePointer<multicast_registration>?
  ) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    guard let out else { return .invalidArgument }
    let (stripe, id) = registration.lockStripe()
    defer { stripe.unlock() }
    guard id == token else { return .invalidHandle }
    var known = multicast_registration()
    registration.write(token, to: &known)
    return StructSize.write(&known, to: out, smallest: StructSize.registration)
  }

  /// Writes what there is to know about a live registration, but `strong`. The stripe's lock is
  /// held.
  private func write(_ token: Token, to known: inout multicast_registration) {
    let multicast = Multicast(slot: owner)
    let entry = multicast.list.unsafelyUnwrapped.entry(place)
    let state = entry.pointee.state.load(ordering: .relaxed)
    let details = self.details
    let latest = (details?.pointee.flags ?? 0) & MULTICAST_LATEST
    known.flags = latest | (state & InvocationList.State.once != 0 ? MULTICAST_ONCE : 0)
    known.token.id = token.rawValue
    known.target.id = multicast.handle.rawValue
    known.delegate = InvocationList.delegate(of: entry)
    known.priority = details?.pointee.priority ?? 0
    known.is_paused = state & InvocationList.State.paused != 0
    known.events = details?.pointee.events ?? 0
    known.lifetime.id = Membership.of(self, .owned)?.pointee.lifetime.rawValue ?? 0
    known.queue.id = details.map { Queue.handle(of: $0).rawValue } ?? 0
    known.label = details.flatMap { RegistrationDetails.label(of: $0) }
      .flatMap { shims_get_label($0) }
  }
}
