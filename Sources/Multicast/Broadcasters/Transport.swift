import MulticastHeader
import MulticastShims

/// The transport of a broadcaster: the only delegate of a multicast that no caller knows.
///
/// So each call of its functions is the call of a delegate, and to detach the transport is to
/// destroy that multicast: the rules of removals hold for transports. The multicast's handle stands
/// for the transport.
enum Transport {
  enum Function { case publish, subscribe, unsubscribe }

  /// The call of one function.
  struct Call {
    let function: Function
    let name: UnsafePointer<CChar>?
    var invocation = Invocation(event: 0, payload: nil, size: 0)
    /// Its result.
    var status: multicast_status = 0
  }

  /// Creates a transport from a caller's struct. If this fails after the struct was read, the
  /// release function has run.
  static func create(_ given: UnsafePointer<multicast_transport>) throws(Status) -> Handle {
    guard StructSize.isValid(given, smallest: StructSize.transport), given.pointee.flags == 0 else {
      throw .invalidArgument
    }
    let block: UnsafeMutablePointer<multicast_transport>
    do throws(Status) { block = try Allocator.make(given.pointee) } catch {
      if let release = given.pointee.release { PendingCleanup.run(release, given.pointee.context) }
      throw error
    }
    var handle = Handle.none
    do throws(Status) {
      if given.pointee.publish == nil { throw .invalidArgument }
      // A caller that guesses the handle cannot use it: the kind is not that of a caller's.
      handle = try Multicast.create(.transport) { Multicast.initialize($0, $1, 0) }
    } catch {
      PendingCleanup.run(release, block)
      throw error
    }
    var delegate = multicast_delegate(function: call, context: block)
    var options = Options(nil).unsafelyUnwrapped
    options.given.release = release
    var new = NewDelegates(&delegate, count: 1, options, nil)
    do throws(Status) {
      if try find(handle)?.add(&new) ?? false { return handle }
      throw .invalidHandle
    } catch {
      new.abandon()
      _ = detach(handle)
      throw error
    }
  }

  /// Waits for its calls, as the removal of a delegate does.
  static func detach(_ handle: Handle, _ timeout: Timeout = .untilExit) -> Status {
    find(handle)?.destroySlowly(timeout).waiting ?? .ok
  }

  private static func find(_ handle: Handle) -> Multicast? {
    Multicast(slotOf: handle, .transport)
  }

  /// Calls a function of a transport.
  ///
  /// - Parameter owned: The payload that the frame of the call retains.
  /// - Returns: the function's status, or the reason why it was not called; nil if the transport is
  ///   detached.
  static func call(_ handle: Handle, _ call: Call, _ owned: inout Payload?) -> multicast_status? {
    guard let multicast = find(handle) else { return nil }
    var call = call
    let count = withUnsafePointer(to: &call) {
      multicast.invoke(Invocation(event: 0, payload: $0, size: 0), keeping: &owned)
    }
    // The transport was detached before, or just before the call.
    if count == Status.invalidHandle.count || count == 0 { return nil }
    return count < 0 ? Int32(truncatingIfNeeded: count) : call.status
  }

  /// Whether a registration that this thread is calling belongs to a transport. It has no details,
  /// and its release function stays in the slot until the call returns.
  static func isCalled(as token: Token) -> Bool {
    Registration(index: token.index).storage.pointee.word
      == unsafeBitCast(release, to: UnsafeMutableRawPointer.self)
  }

  private static let call: multicast_function = { block, _, payload, _ in
    guard let block, let payload else { return }
    let transport = block.assumingMemoryBound(to: multicast_transport.self).pointee
    let call = UnsafeMutableRawPointer(mutating: payload).assumingMemoryBound(to: Call.self)
    let name = call.pointee.name
    switch call.pointee.function {
    case .publish:
      let invocation = call.pointee.invocation
      call.pointee.status = transport.publish.unsafelyUnwrapped(
        transport.context, name, invocation.event, invocation.payload, invocation.size)
    case .subscribe:
      if let subscribe = transport.subscribe {
        call.pointee.status = subscribe(transport.context, name)
      }
    case .unsubscribe: transport.unsubscribe?(transport.context, name)
    }
  }

  private static let release: RegistrationDetails.Release = { block in
    guard let block else { return }
    let transport = block.assumingMemoryBound(to: multicast_transport.self)
    transport.pointee.release?(transport.pointee.context)
    Allocator.free(transport)
  }
}
