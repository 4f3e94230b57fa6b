import MulticastHeader

@_cdecl("multicast_token_is_valid") @implementation
public func multicast_token_is_valid(_ token: multicast_token) -> Bool {
  Registration.isLive(token.handle)
}

@_cdecl("multicast_token_remove") @implementation
@_optimize(speed)
public func multicast_token_remove(_ token: multicast_token) -> multicast_status {
  Multicast.remove(token.handle, .untilExit).code
}

@_cdecl("multicast_token_remove_nowait") @implementation
public func multicast_token_remove_nowait(_ token: multicast_token) -> multicast_status {
  Multicast.remove(token.handle, .none).code
}

@_cdecl("multicast_token_remove_within") @implementation
public func multicast_token_remove_within(
  _ token: multicast_token, _ timeout_ns: UInt64
) -> multicast_status {
  Multicast.remove(token.handle, .nanoseconds(timeout_ns)).code
}

@_cdecl("multicast_token_pause") @implementation
public func multicast_token_pause(_ token: multicast_token) -> multicast_status {
  Multicast.setPaused(true, token.handle).code
}

@_cdecl("multicast_token_resume") @implementation
public func multicast_token_resume(_ token: multicast_token) -> multicast_status {
  Multicast.setPaused(false, token.handle).code
}

@_cdecl("multicast_token_current") @implementation
public func multicast_token_current() -> multicast_token {
  let frame = ThreadRecord.current?.innermostCall { !Transport.isCalled(as: $0) }
  return multicast_token(id: frame?.hazard.rawValue ?? 0)
}

@_cdecl("multicast_token_get_registration") @implementation
public func multicast_token_get_registration(
  _ token: multicast_token, _ out: UnsafeMutablePointer<multicast_registration>?
) -> multicast_status {
  Registration.read(token.handle, into: out).code
}

@_cdecl("multicast_token_invoke") @implementation
public func multicast_token_invoke(
  _ token: multicast_token, _ event: UInt32, _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  guard payload != nil || size == 0 else { return Status.invalidArgument.count }
  return AnyCall.with(Invocation(event: event, payload: payload, size: size)) { call in
    Registration.invoke(token.handle, call)
  }
}

@_cdecl("multicast_token_visit") @implementation
public func multicast_token_visit(
  _ token: multicast_token, _ visitor: multicast_visitor?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let visitor else { return Status.invalidArgument.count }
  return AnyCall.with(Visit(visitor: visitor, context: context)) { call in
    Registration.invoke(token.handle, call)
  }
}

@_cdecl("multicast_call_stack") @implementation
public func multicast_call_stack(
  _ out: UnsafeMutablePointer<multicast_token>?, _ capacity: Int
) -> Int64 {
  guard capacity == 0 || out != nil else { return Status.invalidArgument.count }
  var depth = 0
  ThreadRecord.current?.forEachCall { token in
    if Transport.isCalled(as: token) { return }
    if UInt(bitPattern: depth) < UInt(bitPattern: capacity) { out?[depth].id = token.rawValue }
    depth &+= 1
  }
  return Int64(depth)
}

@_cdecl("multicast_ended_within") @implementation
public func multicast_ended_within(_ handle: UInt64, _ timeout_ns: UInt64) -> multicast_status {
  let (handle, timeout) = (Handle(handle), Timeout.nanoseconds(timeout_ns))
  let status =
    switch handle.kind {
    case .registration: Multicast.waitForEnd(of: handle, timeout)
    case .lifetime: Lifetime.waitForEnd(of: handle, timeout)
    case .queue: Queue.waitForEnd(of: handle, timeout)
    default: Multicast(slotOf: handle)?.waitForEnd(timeout) ?? .invalidHandle
    }
  return status.code
}
