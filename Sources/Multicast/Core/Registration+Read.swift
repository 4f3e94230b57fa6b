import MulticastHeader
import MulticastShims
import Synchronization

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
