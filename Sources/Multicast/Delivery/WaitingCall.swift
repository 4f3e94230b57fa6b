import CMulticast
import MulticastShims

/// A call that waits in a queue: one cache line.
struct WaitingCall {
  /// 0 where it was taken back.
  var token: UInt64
  /// The position of the one before of the same delegate, which may be gone.
  var previous: UInt64
  /// Of the delegate; there as long as the call is.
  var extras: UnsafeMutablePointer<Extras>
  var event: UInt32
  /// How many bytes stand in `bytes`; or `shared`.
  var size: UInt32
  /// The payload, where it is small; else its address: the caller's own where the size is 0.
  var bytes: (UInt64, UInt64, UInt64, UInt64)

  static let inlineSize = 32
  static let shared = UInt32.max

  /// Fills in the payload: a copy of its own, or one more hold of the shared one.
  static func setPayload(
    of call: UnsafeMutablePointer<WaitingCall>, _ invocation: Invocation, _ kept: Payload?
  ) {
    call.pointee.event = invocation.event
    if let kept {
      kept.hold()
      call.pointee.size = shared
      call.pointee.bytes.0 = UInt64(UInt(bitPattern: kept.header))
    } else if invocation.size == 0 {
      call.pointee.size = 0
      call.pointee.bytes.0 = UInt64(UInt(bitPattern: invocation.payload))
    } else {
      call.pointee.size = UInt32(truncatingIfNeeded: invocation.size)
      shims_copy(
        &call.pointee.bytes, invocation.payload.unsafelyUnwrapped, invocation.size)
    }
  }

  /// The payload that is shared with other calls, if it is.
  var sharedPayload: Payload? {
    if size != Self.shared { return nil }
    return Payload(UnsafeMutableRawPointer(bitPattern: UInt(bytes.0)).unsafelyUnwrapped)
  }

  /// What the delegate is passed. Small payloads stay where the call is.
  static func invocation(
    of call: UnsafeMutablePointer<WaitingCall>
  ) -> Invocation {
    let event = call.pointee.event
    if let shared = call.pointee.sharedPayload {
      return Invocation(event: event, payload: shared.bytes, size: shared.size)
    }
    if call.pointee.size == 0 {
      let payload = UnsafeRawPointer(bitPattern: UInt(call.pointee.bytes.0))
      return Invocation(event: event, payload: payload, size: 0)
    }
    let offset = MemoryLayout<WaitingCall>.size - inlineSize
    return Invocation(
      event: event, payload: UnsafeRawPointer(call) + offset, size: Int(call.pointee.size))
  }
}
