import MulticastHeader
import MulticastShims
import Synchronization

/// `multicast_enumerate`: what each registration is passed to. `multicast_prune`: nothing is
/// passed. Or an add that replays.
struct Enumeration {
  typealias Function =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ registration: UnsafePointer<multicast_registration>?
    ) -> Bool

  let function: Function?
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

  private func write(
    ifLive token: Token, to out: UnsafeMutablePointer<multicast_registration>
  ) -> Bool {
    let stripe = Stripe(of: owner)
    stripe.lock()
    defer { stripe.unlock() }
    guard id == token else { return false }
    let strong = out.pointee.strong
    write(token, to: out)
    out.pointee.strong = strong
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
    guard StructSize.prepareOutput(out, smallest: StructSize.registration) else {
      return .invalidArgument
    }
    registration.write(token, to: out)
    return .ok
  }

  /// Writes what there is to know about a live registration. The stripe's lock is held.
  func write(_ token: Token, to out: UnsafeMutablePointer<multicast_registration>) {
    let multicast = Multicast(slot: owner)
    let entry = multicast.list.unsafelyUnwrapped.entry(place)
    let state = entry.pointee.state.load(ordering: .relaxed)
    let details = self.details
    let latest = (details?.pointee.flags ?? 0) & MULTICAST_LATEST
    out.pointee.flags = latest | (state & InvocationList.State.once != 0 ? MULTICAST_ONCE : 0)
    out.pointee.token.id = token.rawValue
    out.pointee.target.id = multicast.handle.rawValue
    out.pointee.delegate = InvocationList.delegate(of: entry)
    out.pointee.strong = nil
    out.pointee.priority = details?.pointee.priority ?? 0
    out.pointee.is_paused = state & InvocationList.State.paused != 0
    out.pointee.reserved = (0, 0, 0)
    out.pointee.events = details?.pointee.events ?? 0
    out.pointee.lifetime.id = Membership.of(self, .owned)?.pointee.lifetime.rawValue ?? 0
    out.pointee.queue.id = details.map { Queue.handle(of: $0).rawValue } ?? 0
    out.pointee.label = details.flatMap { RegistrationDetails.label(of: $0) }
      .flatMap { shims_get_label($0) }
  }
}
