import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Visits the delegates until the visitor returns false. If that happens and `undo` is not nil,
  /// undoes the earlier visits.
  ///
  /// - Returns: the number of visits that have not been undone, or a negative status code.
  func visit(_ visit: Visit, orUndo undo: Visit?) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    let count = withList(on: thread) { list, frame, mode in
      list.visit(visit, orUndo: undo, in: frame, mode)
    }
    invokeDeferred(on: thread)
    return count
  }
}

/// Records which delegates have been visited, with one bit per delegate. The frame retains the
/// memory like a payload, because the thread may end inside a visit.
private struct VisitMarks {
  private let bits: UnsafeMutablePointer<UInt8>

  init(_ count: Int, in frame: Frame) throws(Status) {
    let payload = try Payload(zeros: count / 8 &+ 1)
    payload.pass(to: frame)
    bits = UnsafeMutablePointer(
      mutating: payload.bytes.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self))
  }

  func set(_ position: Int) { bits[position / 8] |= 1 << UInt8(position % 8) }
  func isSet(_ position: Int) -> Bool { bits[position / 8] & 1 << UInt8(position % 8) != 0 }
}

extension InvocationList {
  /// Visits every delegate, within an invocation's frame.
  func visit(
    _ visit: Visit, orUndo undo: Visit?, in frame: Frame, _ mode: Multicast.Mode
  ) -> Int64 {
    let target = mode.isWatched ? Multicast(frame.target).handle.rawValue : 0
    if mode.isWatched { shims_probe_invoke_begin(target, 0, nil, 0) }
    let visited =
      undo.map { self.visit(visit, orUndo: $0, frame, mode) }
      ?? AnyCall.with(visit) { call in
        var walk = Walk(in: frame, mode)
        return walk.run(call, from: address, to: end)
      }
    if mode.isWatched { shims_probe_invoke_end(target, 0, visited) }
    return visited
  }

  private func visit(
    _ visit: Visit, orUndo undo: Visit, _ frame: Frame, _ mode: Multicast.Mode
  ) -> Int64 {
    let count = end - address
    guard let marks = try? VisitMarks(count, in: frame) else { return Status.outOfMemory.count }
    defer { Payload.release(of: frame) }
    var walk = Walk(in: frame, mode)
    var (position, visited) = (0, Int64(0))
    var outcome = Walk.Outcome()
    AnyCall.with(visit) { call in
      while outcome.goesOn && position < count {
        outcome = walk.step(call, address[position])
        if outcome.isCalled { visited &+= 1 }
        if outcome.isCalled && outcome.goesOn { marks.set(position) }
        position &+= 1
      }
    }
    // Undo the visits in reverse order. Skip delegates that have since been removed, but include
    // paused delegates.
    AnyCall.with(undo) { call in
      while !outcome.goesOn && position > 0 {
        position &-= 1
        if marks.isSet(position) { _ = walk.step(call, address[position]) }
      }
      walk.finish(call)
    }
    return outcome.goesOn ? visited : 0
  }
}

/// An enumeration of registrations. `multicast_enumerate` passes each registration to a function.
/// `multicast_prune` has no such function, and only removes registrations whose contexts are dead.
struct Enumeration {
  let function: multicast_enumerator?
  let context: UnsafeMutableRawPointer?

  /// The number of registrations passed to the function, and the number of registrations removed
  /// because their contexts were dead.
  private(set) var passed: Int64 = 0
  var removed: Int64 = 0

  init(_ function: multicast_enumerator?, _ context: UnsafeMutableRawPointer?) {
    self.function = function
    self.context = context
  }

  /// Passes a registration to the function, unless it has been removed. This thread's hazard
  /// protects the registration. Returns false if no further registration is to be passed.
  mutating func pass(
    _ registration: Registration, _ token: Token, strong: UnsafeMutableRawPointer?
  ) -> Bool {
    guard let function else { return true }
    var known = multicast_registration()
    known.struct_size = UInt32(MemoryLayout<multicast_registration>.size)
    known.strong = strong
    guard registration.write(ifLive: token, to: &known) else { return true }
    passed &+= 1
    Lock.checkNoneIsHeld()
    return function(context, &known)
  }
}

extension Multicast {
  /// Passes every registration to a function, and removes registrations whose contexts are dead.
  ///
  /// - Returns: the number of registrations passed to the function or, if there is no function, the
  ///   number of removed registrations. A negative number is a status code.
  func enumerate(_ function: multicast_enumerator?, _ context: UnsafeMutableRawPointer?) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    var enumeration = Enumeration(function, context)
    let status = withUnsafeMutablePointer(to: &enumeration) { enumeration in
      AnyCall.with(AnyCall.Details(enumeration)) { call in
        withList(on: thread) { list, frame, mode in
          var walk = Walk(in: frame, mode)
          return walk.run(call, from: list.address, to: list.end)
        }
      }
    }
    invokeDeferred(on: thread)
    if status < 0 { return status }
    return function == nil ? enumeration.removed : enumeration.passed
  }
}

extension Registration {
  fileprivate func write(ifLive token: Token, to known: inout multicast_registration) -> Bool {
    let stripe = Stripe(of: owner)
    stripe.lock()
    defer { stripe.unlock() }
    guard id.isLive(as: token) else { return false }
    write(token, to: &known)
    return true
  }

  static func read(
    _ token: Token, into out: UnsafeMutablePointer<multicast_registration>?
  ) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    guard let out else { return .invalidArgument }
    let (stripe, id) = registration.lockStripe()
    defer { stripe.unlock() }
    guard id.isLive(as: token) else { return .invalidHandle }
    var known = multicast_registration()
    registration.write(token, to: &known)
    return StructSize.write(&known, to: out, smallest: StructSize.registration)
  }

  /// Writes all properties of a live registration except `strong`. The caller holds the stripe's
  /// lock.
  private func write(_ token: Token, to known: inout multicast_registration) {
    let details = self.details
    let latest = (details?.pointee.flags ?? 0) & MULTICAST_LATEST
    known.flags = latest | (has(Flags.once) ? MULTICAST_ONCE : 0)
    known.token.id = token.rawValue
    known.target.id = Multicast(slot: owner).handle.rawValue
    known.delegate = delegate
    known.priority = priority
    known.is_paused = has(Flags.paused)
    known.events = details?.pointee.events ?? 0
    known.lifetime.id = Membership.of(self, .owned)?.pointee.lifetime.rawValue ?? 0
    known.queue.id = details.map { Queue.handle(of: $0).rawValue } ?? 0
    known.label = label.flatMap { shims_get_label($0) }
  }
}
