import CMulticast

@_cdecl("multicast_token_is_live") @implementation
public func multicast_token_is_live(_ token: multicast_token) -> Bool {
  Registration.isLive(token.handle)
}

@_cdecl("multicast_token_remove") @implementation
public func multicast_token_remove(_ token: multicast_token) -> multicast_status {
  Multicast.remove(token.handle, .unlimited).code
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
  multicast_token(id: ThreadRecord.current?.innermostCall.rawValue ?? 0)
}

@_cdecl("multicast_token_get") @implementation
public func multicast_token_get(
  _ token: multicast_token, _ out: UnsafeMutablePointer<multicast_registration>?
) -> multicast_status {
  Registration.read(token.handle, into: out).code
}
