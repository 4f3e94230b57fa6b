import MulticastHeader
import Synchronization

/// The action of an invocation's loop for each delegate.
protocol Call {
  /// - Returns: false to stop.
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool

  /// The same, as what every function beside that loop takes.
  var details: AnyCall.Details { get }
}

/// `multicast_invoke`: calls the function.
extension Invocation: Call {
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    Lock.checkNoneIsHeld()
    function(context, event, payload, size)
    return true
  }

  var details: AnyCall.Details {
    AnyCall.Details(invocation: self, visit: nil, dispatch: nil)
  }
}

/// `multicast_visit`: passes the delegate to the visitor.
struct Visit: Call {
  let visitor: multicast_visitor
  let context: UnsafeMutableRawPointer?

  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    var delegate = multicast_delegate(function: function, context: context)
    Lock.checkNoneIsHeld()
    return visitor(self.context, &delegate)
  }

  var details: AnyCall.Details {
    AnyCall.Details(
      invocation: Invocation(event: 0, payload: nil, size: 0), visit: self, dispatch: nil)
  }
}

/// A type-erased call for cold paths, compiled once.
struct AnyCall: Call {
  struct Details {
    let invocation: Invocation
    /// nil: the function is called.
    let visit: Visit?
    /// nil: the invocation has no options.
    let dispatch: UnsafeMutablePointer<Dispatch>?
  }

  private let pointer: UnsafePointer<Details>

  var details: Details { pointer.pointee }

  /// - Parameter body: Does not keep the call.
  static func with<C: Call, Result>(_ call: C, _ body: (AnyCall) -> Result) -> Result {
    var details = call.details
    return with(&details, body)
  }

  static func with<Result>(_ details: inout Details, _ body: (AnyCall) -> Result) -> Result {
    withUnsafePointer(to: &details) { body(AnyCall(pointer: $0)) }
  }

  /// Whether calls of delegates that were added with a queue are queued.
  var isQueued: Bool { pointer.pointee.visit == nil }

  /// Whether a delegate is called that does not want every call.
  func wants(_ details: RegistrationDetails.Address) -> Bool {
    if !isQueued { return true }
    if let dispatch = pointer.pointee.dispatch,
      // Relaxed: an invocation that was kept later has taken the stripe's lock.
      details.pointee.replayed.load(ordering: .relaxed) > dispatch.pointee.number
    {
      return false  //~ replayed_and_called
    }
    let events = details.pointee.events
    return events == 0 || pointer.pointee.invocation.isWanted(events)
  }

  /// - Returns: false to stop.
  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    if let visit = pointer.pointee.visit { return visit(function, context) }
    return pointer.pointee.invocation(function, context)
  }

  /// Queues a call of a delegate that is not special otherwise.
  ///
  /// - Returns: whether it was queued.
  @inline(__always)
  func enqueuePlain(
    _ registration: Registration, _ token: Token, to queue: Queue, _ frame: Frame
  ) -> Bool {
    guard details.dispatch == nil && WaitingCall.holds(details.invocation.size) else {
      return enqueue(token, to: queue, frame) == .queued
    }
    if _fastPath(queue.enqueueInFastPath(registration, token, details.invocation)) { return true }
    return queue.enqueueLocked(token, details.invocation, sharing: nil, frame) == .queued
  }

  /// Queues a call.
  @inline(never)
  func enqueue(_ token: Token, to queue: Queue, _ frame: Frame) -> Queue.EnqueueResult {
    let invocation = pointer.pointee.invocation
    if let dispatch = pointer.pointee.dispatch {
      return dispatch.pointee.enqueue(token, to: queue, frame)
    }
    if WaitingCall.holds(invocation.size) {
      return queue.enqueue(token, invocation, sharing: nil, frame)
    }
    return queue.enqueueLarge(token, invocation, frame)
  }

  /// Called after the last delegate, if not every delegate was plain. With options the payload is
  /// released, or waited for, after the invocation.
  @inline(__always) func releasePayload(_ frame: Frame) {
    if pointer.pointee.dispatch == nil && frame.payload != 0 { Payload.release(of: frame) }
  }
}

extension Registration {
  /// Calls a delegate that this thread's hazard protects and that was found live. The context is
  /// locked if it counts references. A delegate that is called once is removed before.
  ///
  /// - Parameter state: That of its entry, or the bits of it that matter here.
  /// - Returns: whether it was called. It is not if its context is dead, or if it was removed
  ///   meanwhile.
  func callProtected(
    _ token: Token, context: UnsafeMutableRawPointer?, _ state: UInt32,
    _ body: (_ context: UnsafeMutableRawPointer?) -> Void
  ) -> Bool {
    // Read before the call: the delegate may remove itself.
    let isShared = state & InvocationList.State.shared != 0
    let own = ContextLock(self, isShared: isShared)
    // If it is live, the functions are those of its multicast.
    if isShared && id != token { return false }
    Lock.checkNoneIsHeld()
    let strong = own.lock.map { $0(context) } ?? context
    let isDead = own.lock != nil && strong == nil
    // Locking may have removed it, or have taken so long that another thread has.
    let isRemovedNow = isDead || state & InvocationList.State.once != 0
    let isOurs = isRemovedNow ? Multicast.claim(token) : id == token
    let isCalled = isOurs && !isDead
    if isCalled { body(strong) }
    if !isDead { own.unlock?(strong) }  //~ unlock_forgotten
    return isCalled
  }
}
