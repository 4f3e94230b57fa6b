import MulticastHeader
import MulticastShims
import Synchronization

/// An enumeration of registrations. `multicast_enumerate` passes each registration to a function.
/// `multicast_prune` passes no registrations, because it has no function.
struct Enumeration {
  let function: multicast_enumerator?
  let context: UnsafeMutableRawPointer?

  /// The number of registrations passed, and the number of registrations removed because their
  /// contexts were dead.
  private(set) var passed: Int64 = 0
  var removed: Int64 = 0

  init(_ function: multicast_enumerator?, _ context: UnsafeMutableRawPointer?) {
    self.function = function
    self.context = context
  }

  /// Passes a registration protected by this thread's hazard, unless it has been removed.
  ///
  /// - Returns: false to stop.
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
  /// - Returns: the number of registrations passed or, without a function, removed; or a negative
  ///   status code.
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

  /// Copies a registration's properties to a caller's struct.
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
