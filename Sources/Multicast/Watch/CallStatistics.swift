import MulticastHeader
import MulticastShims

/// Statistics of a registration, counted while it is watched. The watches' lock guards it.
///
/// The tallies of a slab of registrations are in one block, which is allocated when the first is
/// needed. Each is that of the newest token for which something was counted.
struct CallStatistics {
  private var token = Token.none
  // As in `multicast_token_stats`.
  private var calls: UInt64 = 0
  private var total: UInt64 = 0
  private var longest: UInt64 = 0
  private var queued: UInt64 = 0
  private var dropped: UInt64 = 0

  /// Counts, under the lock. Without memory nothing is counted.
  static func add(
    _ token: Token, calls: UInt64 = 0, taking elapsed: UInt64 = 0, queued: UInt64 = 0,
    dropped: UInt64 = 0
  ) {
    guard let statistics = place(of: token, adds: true) else { return }
    if statistics.pointee.token != token {
      // A thread that is late counts nothing for the next registration.
      if statistics.pointee.token.rawValue > token.rawValue { return }
      statistics.initialize(to: CallStatistics())
      statistics.pointee.token = token
    }
    statistics.pointee.calls &+= calls
    statistics.pointee.total &+= elapsed
    statistics.pointee.longest = max(statistics.pointee.longest, elapsed)
    statistics.pointee.queued &+= queued
    statistics.pointee.dropped &+= dropped
  }

  /// Reads what was counted of a live registration.
  static func read(
    _ token: Token, into out: UnsafeMutablePointer<multicast_token_stats>?
  ) -> Status {
    guard Registration.isLive(token) else { return .invalidHandle }
    guard let out else { return .invalidArgument }
    var statistics = CallStatistics()
    Lock.watches.lock()
    if let known = place(of: token, adds: false), known.pointee.token == token {
      statistics = known.pointee
    }
    Lock.watches.unlock()
    statistics.token = .none  // it is in the place of `struct_size` and `reserved`
    var known = unsafeBitCast(statistics, to: multicast_token_stats.self)
    return StructSize.write(&known, to: out, smallest: StructSize.tokenStats)
  }

  private static func place(of token: Token, adds: Bool) -> UnsafeMutablePointer<CallStatistics>? {
    let (slab, place) = SlabDirectory.parts(of: token.index)
    let block = shims_get_tallies(slab).unsafelyUnwrapped
    if block.pointee == nil && adds {
      let count = Int(Registration.directory.slotCount(ofSlab: slab))
      block.pointee = try? Allocator.allocateZeroed(
        size: count &* MemoryLayout<CallStatistics>.stride)
    }
    return block.pointee.map { $0.assumingMemoryBound(to: CallStatistics.self) + place }
  }
}

/// Detects a long wait for a call, and notifies a watch once.
struct StallDetection {
  private let target: Handle
  private let begin: UInt64
  private var moment = UInt64.max

  init(for token: Token) {
    let registration = Registration(slotOf: token)
    self.init(with: registration.map { Multicast(slot: $0.owner).handle } ?? .none)
    // The end of a watch waits for no call, so no other watch is notified.
    if token.kind == .watch { moment = .max }
  }

  init(with target: Handle) {
    self.target = target
    begin = shims_now_ns()
    Lock.watches.lock()
    let slow = Watch.find(target).map { $0.pointee.given.slow_ns } ?? 0
    Lock.watches.unlock()
    let (end, isBeyond) = begin.addingReportingOverflow(slow)
    if slow != 0 && !isBeyond { moment = end }
  }

  /// How long it may sleep until it has to look.
  func limit(_ timeout: Timeout) -> Timeout { Timeout(deadline: min(timeout.deadline, moment)) }

  var isOver: Bool { moment != .max && shims_now_ns() >= moment }

  /// Notifies the watch if the wait is long. No lock is held.
  ///
  /// - Parameter token: The call for which the thread waits; none if it is not known.
  /// - Returns: whether it was time.
  mutating func notifyIfStalled(_ token: Token) -> Bool {
    guard isOver else { return false }
    moment = .max
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { return true }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    // A copy: the call may end, and the registration with it.
    var label = shims_label()
    var hasLabel = false
    if let registration = Registration(slotOf: token) {
      let (stripe, id) = registration.lockStripe()
      if id.changed(to: .registration) == token, let known = registration.label {
        label = known.pointee
        hasLabel = true
      }
      stripe.unlock()
    }
    withUnsafeMutablePointer(to: &label) {
      Watch.notify(
        target, token, hasLabel ? $0 : nil, 0, since: begin, isStuck: true, on: thread)
    }
    return true
  }
}
