import MulticastHeader

@_cdecl("multicast_broadcaster_create") @implementation
public func multicast_broadcaster_create(
  _ options: UnsafePointer<multicast_broadcaster_options>?
) -> multicast_broadcaster {
  multicast_broadcaster(id: creating { () throws(Status) in try Broadcaster.create(options) })
}

@_cdecl("multicast_broadcaster_destroy") @implementation
public func multicast_broadcaster_destroy(
  _ broadcaster: multicast_broadcaster
) -> multicast_status {
  code { () throws(Status) in try Broadcaster.destroy(broadcaster.handle) }
}

@_cdecl("multicast_broadcaster_destroy_within") @implementation
public func multicast_broadcaster_destroy_within(
  _ broadcaster: multicast_broadcaster, _ timeout_ns: UInt64
) -> multicast_status {
  code { () throws(Status) in
    try Broadcaster.destroy(broadcaster.handle, .nanoseconds(timeout_ns))
  }
}

@_cdecl("multicast_broadcaster_is_valid") @implementation
public func multicast_broadcaster_is_valid(_ broadcaster: multicast_broadcaster) -> Bool {
  Broadcaster(slotOf: broadcaster.handle)?.isCurrent ?? false
}

@_cdecl("multicast_broadcaster_default") @implementation
public func multicast_broadcaster_default() -> multicast_broadcaster {
  multicast_broadcaster(id: creating { () throws(Status) in try Broadcaster.defaultHandle() })
}

@_cdecl("multicast_broadcaster_register") @implementation
public func multicast_broadcaster_register(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?,
  _ observer: multicast_delegate, _ options: UnsafePointer<multicast_add_options>?,
  _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  var observer = observer
  return Broadcaster.register(
    broadcaster.handle, Name(name), &observer, 1, Options.read(options), out
  ).code
}

@_cdecl("multicast_broadcaster_register_prefix") @implementation
public func multicast_broadcaster_register_prefix(
  _ broadcaster: multicast_broadcaster, _ prefix: UnsafePointer<CChar>?,
  _ observer: multicast_delegate, _ options: UnsafePointer<multicast_add_options>?,
  _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  var observer = observer
  return Name.withKey(ofPrefix: prefix) { key in
    Broadcaster.register(broadcaster.handle, key, &observer, 1, Options.read(options), out)
  }.code
}

@_cdecl("multicast_current_name") @implementation
public func multicast_current_name() -> UnsafePointer<CChar>? {
  guard let thread = ThreadRecord.current,
    let frame = thread.innermostCall(where: { !Transport.isCalled(as: $0) })
  else { return nil }
  if frame.target.isRun { return Payload(retainedBy: frame)?.name }
  return thread.name(in: frame)
}

@_cdecl("multicast_broadcaster_register_many") @implementation
public func multicast_broadcaster_register_many(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?,
  _ observers: UnsafePointer<multicast_delegate>?, _ count: Int,
  _ options: UnsafePointer<multicast_add_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  guard NewDelegates.allows(count) else { return Status.limit.code }
  return Broadcaster.register(
    broadcaster.handle, Name(name), observers, count, Options.read(options), out
  ).code
}

@_cdecl("multicast_broadcaster_unregister") @implementation
public func multicast_broadcaster_unregister(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?,
  _ observer: multicast_delegate
) -> multicast_status {
  code { () throws(Status) in
    try Broadcaster.unregister(broadcaster.handle, name, observer)
  }
}

@_cdecl("multicast_broadcaster_unregister_all") @implementation
public func multicast_broadcaster_unregister_all(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?
) -> Int64 {
  counting { () throws(Status) in
    try Broadcaster.unregisterAll(broadcaster.handle, name)
  }
}

@_cdecl("multicast_broadcaster_unregister_context") @implementation
public func multicast_broadcaster_unregister_context(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?,
  _ context: UnsafeMutableRawPointer?
) -> Int64 {
  counting { () throws(Status) in
    try Broadcaster.unregisterAll(broadcaster.handle, name, .context(context))
  }
}

@_cdecl("multicast_broadcaster_notify") @implementation
@_optimize(speed)
public func multicast_broadcaster_notify(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?, _ event: UInt32,
  _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  guard payload != nil || size == 0 else { return Status.invalidArgument.count }
  return Broadcaster.notify(
    broadcaster.handle, name, Invocation(event: event, payload: payload, size: size))
}

@_cdecl("multicast_broadcaster_deliver") @implementation
public func multicast_broadcaster_deliver(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?, _ event: UInt32,
  _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  if _slowPath(size != 0), payload == nil { return Status.invalidArgument.count }
  return Broadcaster.deliver(
    broadcaster.handle, name, Invocation(event: event, payload: payload, size: size))
}

@_cdecl("multicast_broadcaster_attach") @implementation
public func multicast_broadcaster_attach(
  _ broadcaster: multicast_broadcaster, _ transport: UnsafePointer<multicast_transport>?
) -> multicast_status {
  code { () throws(Status) in try Broadcaster.attach(broadcaster.handle, transport) }
}

@_cdecl("multicast_broadcaster_multicast") @implementation
public func multicast_broadcaster_multicast(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?
) -> multicast {
  multicast(
    id: creating { () throws(Status) in
      try Broadcaster.multicast(broadcaster.handle, name)
    })
}
