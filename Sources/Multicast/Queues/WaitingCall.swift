import MulticastHeader
import MulticastShims
import Synchronization

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

/// Detects the end of the calls that an invocation has put into one queue, one after the other.
///
/// Each of these calls shares the receipt instead of the payload. A call that is executed, dropped
/// or cancelled releases the receipt. One more reference is the invocation's: the next receipt of
/// the invocation has it, or the frame, or the thread that waits. So the calls are over when one
/// reference is left. If the invocation's thread ends inside a call, its reference is released as
/// any other.
struct Receipt {
  /// The fields behind the header.
  struct Fields {
    /// The previous receipt of the invocation, or its payload. The receipt retains it.
    let previous: Payload
    let queue: Queue
  }

  /// The references other than calls.
  static let ownReferences: UInt32 = 1

  private static let size = Payload.headerSize + MemoryLayout<Fields>.stride

  let payload: Payload

  init(_ payload: Payload) { self.payload = payload }

  /// Makes a receipt, which takes over one reference to the previous one, or to the payload.
  init(after previous: Payload, for queue: Queue) throws(Status) {
    let block = try Allocator.allocate(size: Self.size)
    payload = Payload(block, .receipt, previous.bytes, previous.size, nil)
    fields.initialize(to: Fields(previous: previous, queue: queue))
  }

  private var fields: UnsafeMutablePointer<Fields> {
    (UnsafeMutableRawPointer(payload.header) + Payload.headerSize)
      .assumingMemoryBound(to: Fields.self)
  }

  var previous: Payload { fields.pointee.previous }
  var queue: Queue { fields.pointee.queue }

  /// Frees a receipt that nothing retains. The caller releases the previous one.
  func deallocate() { Allocator.deallocate(payload.header, size: Self.size) }

  /// Whether no call waits or runs any more.
  var isOver: Bool { payload.counts.references <= Self.ownReferences }

  /// How many calls were executed, and how many wait or run.
  var calls: (made: UInt32, left: UInt32) {
    let (references, made) = payload.counts
    return (made, references &- Self.ownReferences)  //~ own_reference_unfinished
  }

  /// The wait of a thread for these calls.
  var wait: Wait {
    .run(
      Wait.QueuedCalls(
        receipt: UInt(bitPattern: payload.header),
        references: payload.header.pointee.references.address, slot: queue.header,
        queue: queue.handle, consumer: queue.consumer))
  }
}
