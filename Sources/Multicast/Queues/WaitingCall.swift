import MulticastHeader
import MulticastShims
import Synchronization

/// A call that waits in a queue. It occupies one cache line.
struct WaitingCall {
  typealias Address = UnsafeMutablePointer<WaitingCall>

  /// The token of the registration; none if the call was cancelled.
  var token: Token
  /// The position of the previous call of the same delegate, which may already be out of the ring.
  var previous: UInt64
  /// The details of the registration. They exist as long as the call waits.
  var details: RegistrationDetails.Address
  var event: UInt32
  /// The number of bytes in `bytes`, or the constant `shared`.
  var size: UInt32
  /// A small payload, or the address of a shared payload or receipt. If the size is 0, the caller's
  /// pointer.
  var bytes: (UInt64, UInt64, UInt64, UInt64)

  static let inlineSize = 32
  static let shared = UInt32.max

  /// Whether a payload is small enough for a copy in the call.
  ///
  /// - Parameter size: A `size_t`, so a negative value stands for a number that is too large.
  static func holds(_ size: Int) -> Bool { size >= 0 && size <= inlineSize }

  /// Stores the payload: as a copy in the call, or as one more reference to the shared payload.
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

  /// The payload that the call shares with other calls; nil if its payload is not shared.
  var sharedPayload: Payload? {
    if !isShared { return nil }
    return Payload(at: UnsafeMutableRawPointer(bitPattern: UInt(bytes.0)).unsafelyUnwrapped)
  }

  /// The arguments for the delegate. A small payload is passed as a pointer into the call.
  static func invocation(of call: WaitingCall.Address) -> Invocation {
    if let shared = call.pointee.sharedPayload {
      return Invocation(event: call.pointee.event, payload: shared.bytes, size: shared.size)
    }
    return ownInvocation(of: call)
  }

  /// Like `invocation`, but for a call whose payload is not shared.
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

/// Detects the end of the consecutive calls that an invocation has put into one queue. For the next
/// queue, the invocation makes another receipt.
///
/// Each of these calls refers to the receipt instead of the payload. A call that is executed,
/// dropped or cancelled releases the receipt. The invocation itself has one more reference, which
/// is held by its next receipt, by its frame or by the waiting thread. So the calls are over when
/// only one reference is left. If the thread of the invocation ends inside a call, the reference of
/// its frame is released like any other.
struct Receipt {
  /// The fields behind the header.
  struct Fields {
    /// The previous receipt of the invocation, or its payload. The receipt retains it.
    let previous: Payload
    let queue: Queue
  }

  /// The number of references that do not belong to calls.
  static let ownReferences: UInt32 = 1

  private static let size = Payload.headerSize + MemoryLayout<Fields>.stride

  let payload: Payload

  init(_ payload: Payload) { self.payload = payload }

  /// Makes a receipt, which takes over one reference to the previous receipt or to the payload.
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

  /// How many calls were executed, and how many are waiting or running.
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
