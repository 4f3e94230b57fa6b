import MulticastShims

/// A call that waits in a queue: one cache line.
struct WaitingCall {
  typealias Address = UnsafeMutablePointer<WaitingCall>

  /// None if the call was cancelled.
  var token: Token
  /// The position of the previous call of the same delegate, which may be gone.
  var previous: UInt64
  /// The registration's details. They exist as long as the call waits.
  var details: RegistrationDetails.Address
  var event: UInt32
  /// How many bytes are in `bytes`; or `shared`.
  var size: UInt32
  /// A small payload; or the address of a shared one, or of a receipt; or, if the size is 0, the
  /// caller's pointer.
  var bytes: (UInt64, UInt64, UInt64, UInt64)

  static let inlineSize = 32
  static let shared = UInt32.max

  /// Whether a payload is small enough for a copy in the call.
  ///
  /// - Parameter size: A `size_t`: below zero is more than there can be.
  static func holds(_ size: Int) -> Bool { size >= 0 && size <= inlineSize }

  /// Stores the payload: a copy in the call, or one more reference to the shared copy.
  static func setPayload(
    of call: WaitingCall.Address, _ invocation: Invocation, _ shared: Payload?
  ) {
    guard let shared else { return setPayload(of: call, invocation) }
    shared.retain()  //~ payload_not_retained
    call.pointee.event = invocation.event
    call.pointee.size = Self.shared
    call.pointee.bytes.0 = UInt64(UInt(bitPattern: shared.header))
  }

  /// Stores a small payload.
  static func setPayload(of call: WaitingCall.Address, _ invocation: Invocation) {
    call.pointee.event = invocation.event
    call.pointee.size = UInt32(truncatingIfNeeded: invocation.size)
    if invocation.size == 0 {
      call.pointee.bytes.0 = UInt64(UInt(bitPattern: invocation.payload))
    } else {
      shims_copy_small(
        &call.pointee.bytes, invocation.payload.unsafelyUnwrapped, invocation.size)
    }
  }

  var isShared: Bool { size == Self.shared }

  /// The payload that it shares with other calls, if it does.
  var sharedPayload: Payload? {
    if !isShared { return nil }
    return Payload(at: UnsafeMutableRawPointer(bitPattern: UInt(bytes.0)).unsafelyUnwrapped)
  }

  /// The arguments of the delegate. A small payload is passed where it is in the call.
  static func invocation(of call: WaitingCall.Address) -> Invocation {
    if let shared = call.pointee.sharedPayload {
      return Invocation(event: call.pointee.event, payload: shared.bytes, size: shared.size)
    }
    return ownInvocation(of: call)
  }

  /// The same for a payload that is not shared.
  @inline(__always)
  static func ownInvocation(of call: WaitingCall.Address) -> Invocation {
    let event = call.pointee.event
    if call.pointee.size == 0 {
      let payload = UnsafeRawPointer(bitPattern: UInt(call.pointee.bytes.0))
      return Invocation(event: event, payload: payload, size: 0)
    }
    let offset = MemoryLayout<WaitingCall>.size - inlineSize
    return Invocation(
      event: event, payload: UnsafeRawPointer(call) + offset, size: Int(call.pointee.size))
  }
}

/// The arguments that an invocation passes to each delegate.
struct Invocation {
  let event: UInt32
  let payload: UnsafeRawPointer?
  let size: Int

  /// Whether a delegate with this mask of events wants the event. Events from 64 on are not masked.
  func isWanted(_ events: UInt64) -> Bool {
    event >= 64 || events & (1 << UInt64(event)) != 0  //~ events_ignored
  }
}
