import MulticastHeader

/// How a multicast is invoked: a caller's `multicast_invocation`, checked.
struct InvocationOptions {
  typealias Copy =
    @convention(c) (_ payload: UnsafeRawPointer?, _ size: Int) -> UnsafeRawPointer?

  let invocation: Invocation
  private(set) var copy: Copy? = nil
  /// Of what `copy` returns, or, without it, of the caller's payload.
  private(set) var release: Payload.Release? = nil
  /// Whether the invocation waits for the calls that it has queued.
  private(set) var isWaiting = false
  private var timeout: UInt64 = 0

  /// Those of an invocation without options.
  init(_ invocation: Invocation) { self.invocation = invocation }

  /// - Returns: nil if the caller's struct has something that this version does not know. Nothing
  ///   of it may be used then.
  init?(_ given: UnsafePointer<multicast_invocation>?) {
    guard let given, StructSize.isValid(given, smallest: StructSize.invocation) else { return nil }
    let options = given.pointee
    guard options.flags & ~MULTICAST_WAIT == 0, options.reserved == 0 else { return nil }
    invocation = Invocation(event: options.event, payload: options.payload, size: options.size)
    copy = options.copy
    release = options.release
    isWaiting = options.flags & MULTICAST_WAIT != 0
    timeout = options.timeout_ns
  }

  /// Whether the options can be read, but contradict themselves: bytes are to be copied, and there
  /// are none. With `copy` or `release` payload and size are only passed on.
  var isContradictory: Bool {
    invocation.payload == nil && invocation.size != 0 && copy == nil && release == nil
  }

  /// Whether the library owns the payload itself.
  var isOwned: Bool { release != nil && copy == nil }

  /// Whether it takes a copy to invoke later.
  var needsCopy: Bool { copy != nil || invocation.size != 0 }

  /// From now on.
  var deadline: Timeout { timeout == 0 ? .unlimited : .nanoseconds(timeout) }
}
