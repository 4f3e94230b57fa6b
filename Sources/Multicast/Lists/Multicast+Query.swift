import MulticastHeader

extension Multicast {
  func count() throws(Status) -> Int {
    try withLock { () throws(Status) in Int(list?.live ?? 0) }
  }

  func contains(_ delegate: multicast_delegate) throws(Status) -> Bool {
    try withLock { () throws(Status) in
      list?.first(delegate) != nil
    }
  }

  /// Copies as many delegates as there is room for.
  ///
  /// - Parameter capacity: A `size_t`: below zero is more than there can be.
  /// - Returns: how many delegates there are.
  func list(
    into out: UnsafeMutablePointer<multicast_delegate>?, capacity: Int
  ) throws(Status) -> Int {
    try withLock { () throws(Status) in
      guard let list else { return 0 }
      var written = 0
      var position: UInt32 = 0
      while written != capacity,
        let found = list.firstLive(from: position)
      {
        out?[written] = Registration(list.entry(found)).delegate
        written &+= 1
        position = found &+ 1
      }
      return Int(list.live)
    }
  }
}

extension Multicast {
  /// Leaves a delegate out of invocations, or includes it again.
  static func setPaused(_ isPaused: Bool, _ token: Token) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let (stripe, id) = registration.lockStripe()
    defer { stripe.unlock() }
    guard id.isLive(as: token) else { return .invalidHandle }
    registration.setPaused(isPaused)
    Multicast(slot: registration.owner).checkInvariants()
    return .ok
  }
}
