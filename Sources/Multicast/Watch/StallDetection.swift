import MulticastHeader
import MulticastShims

/// Detects that a thread has been waiting for a call for a long time, and notifies the watch once.
struct StallDetection {
  private let target: Handle
  private let begin: UInt64
  private var moment = UInt64.max

  init(for token: Token) {
    let registration = Registration(slotOf: token)
    self.init(with: registration.map { Multicast(slot: $0.owner).handle } ?? .none)
    // A thread that removes a watch waits for a watch's function, not for a delegate, so it
    // notifies no other watch.
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

  /// How long the thread may sleep before it has to check `isOver`.
  func limit(_ timeout: Timeout) -> Timeout { Timeout(deadline: min(timeout.deadline, moment)) }

  var isOver: Bool { moment != .max && shims_now_ns() >= moment }

  /// Notifies the watch if the thread has been waiting too long. No lock is held.
  ///
  /// - Parameter token: The delegate whose call the thread is waiting for; none if not known.
  /// - Returns: whether the thread has been waiting too long.
  mutating func notifyIfStalled(_ token: Token) -> Bool {
    guard isOver else { return false }
    moment = .max
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { return true }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    // Copy the label, because when the call ends, the registration and its label may be freed.
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
