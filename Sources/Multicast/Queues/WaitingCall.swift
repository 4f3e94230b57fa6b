import MulticastHeader
import MulticastShims
import Synchronization

/// A call waiting in a queue. It fills one cache line.
struct WaitingCall {
  typealias Address = UnsafeMutablePointer<WaitingCall>

  /// The token of the registration, or `.none` if the call has been cancelled.
  var token: Token
  /// The position of the previous call to the same delegate. That call may already have left the
  /// ring.
  var previous: UInt64
  /// The details of the registration, which exist as long as the call is waiting.
  var details: RegistrationDetails.Address
  var event: UInt32
  /// The number of bytes in `bytes`, or the constant `shared`.
  var size: UInt32
  /// The payload if it is small, the caller's pointer if the size is 0, or the address of a shared
  /// payload or receipt.
  var bytes: (UInt64, UInt64, UInt64, UInt64)

  static let inlineSize = 32
  static let shared = UInt32.max

  /// Whether a payload is small enough to be stored in a call. A caller's `size_t` is too large if
  /// it is negative as an `Int`.
  static func holds(_ size: Int) -> Bool { size >= 0 && size <= inlineSize }

  /// Stores the payload, either as a copy in the call or as a reference to the shared payload.
  static func setPayload(
    of call: WaitingCall.Address, _ invocation: Invocation, _ shared: Payload?
  ) {
    guard let shared else { return setPayload(of: call, invocation) }
    shared.retain()  //~ payload_not_retained
    call.pointee.event = invocation.event
    call.pointee.size = Self.shared
    call.pointee.bytes.0 = UInt64(UInt(bitPattern: shared.header))
  }

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

  /// The payload or receipt that the call shares with other calls, if any.
  var sharedPayload: Payload? {
    if !isShared { return nil }
    return Payload(at: UnsafeMutableRawPointer(bitPattern: UInt(bytes.0)).unsafelyUnwrapped)
  }

  /// The arguments for the delegate. For a small payload, they contain a pointer into the call.
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

/// Detects when a group of queued calls is over. The group consists of the calls that an invocation
/// has queued one after the other in one queue. When the invocation comes to a delegate with
/// another queue, it creates another receipt.
///
/// Each of these calls holds a reference until it has been executed, dropped or cancelled. One more
/// reference belongs to the invocation. It is held by the invocation's next receipt, its frame, or
/// the waiting thread. So the calls are over when only one reference is left. If the invocation's
/// thread ends inside a call, the frame's reference is also released.
struct Receipt {
  /// The fields after the header.
  struct Fields {
    /// The invocation's previous receipt or its payload, which this receipt retains.
    let previous: Payload
    let queue: Queue
  }

  /// The number of references that belong to the invocation rather than to calls.
  static let ownReferences: UInt32 = 1

  private static let size = Payload.headerSize + MemoryLayout<Fields>.stride

  let payload: Payload

  init(_ payload: Payload) { self.payload = payload }

  /// Creates a receipt, which takes over one reference to the previous receipt or to the payload.
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

  /// The receipt has no references left. The caller releases the previous receipt or payload.
  func deallocate() { Allocator.deallocate(payload.header, size: Self.size) }

  /// Whether all of the calls have been executed, dropped or cancelled.
  var isOver: Bool { payload.counts.references <= Self.ownReferences }

  /// The number of executed calls, and the number of calls that are waiting or running.
  var calls: (made: UInt32, left: UInt32) {
    let (references, made) = payload.counts
    return (made, references &- Self.ownReferences)  //~ own_reference_unfinished
  }

  /// Describes the wait of a thread that sleeps until these calls are over.
  var wait: Wait {
    .run(
      Wait.QueuedCalls(
        receipt: UInt(bitPattern: payload.header),
        references: payload.header.pointee.references.address, slot: queue.header,
        queue: queue.handle, consumer: queue.consumer))
  }
}
