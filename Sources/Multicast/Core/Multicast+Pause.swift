extension Multicast {
  /// Leaves a delegate out of invocations, or includes it again.
  static func setPaused(_ isPaused: Bool, _ token: Token) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let (stripe, id) = registration.lockStripe()
    defer { stripe.unlock() }
    guard id == token else { return .invalidHandle }
    let multicast = Multicast(slot: registration.owner)
    let paused = InvocationList.State.paused
    multicast.mark(
      registration.place, of: multicast.list.unsafelyUnwrapped,
      set: isPaused ? paused : 0, clear: isPaused ? 0 : paused)
    multicast.checkInvariants()
    return .ok
  }
}
