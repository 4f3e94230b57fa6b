import CMulticast

@_cdecl("multicast_broadcaster_create") @implementation
public func multicast_broadcaster_create(
  _ options: UnsafePointer<multicast_broadcaster_options>?
) -> multicast_broadcaster {
  do throws(Status) {
    return multicast_broadcaster(id: try Broadcaster.create(options).rawValue)
  } catch {
    return multicast_broadcaster(id: 0)
  }
}

@_cdecl("multicast_broadcaster_destroy") @implementation
public func multicast_broadcaster_destroy(
  _ broadcaster: multicast_broadcaster
) -> multicast_status {
  code { () throws(Status) in try Broadcaster.destroy(broadcaster.handle) }
}

@_cdecl("multicast_broadcaster_default") @implementation
public func multicast_broadcaster_default() -> multicast_broadcaster {
  do throws(Status) {
    return multicast_broadcaster(id: try Broadcaster.defaultHandle().rawValue)
  } catch {
    return multicast_broadcaster(id: 0)
  }
}

@_cdecl("multicast_broadcaster_register") @implementation
public func multicast_broadcaster_register(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?,
  _ observer: multicast_delegate, _ options: UnsafePointer<multicast_options>?,
  _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  Broadcaster.register(broadcaster.handle, `protocol`, observer, Options.read(options), out).code
}

@_cdecl("multicast_broadcaster_unregister") @implementation
public func multicast_broadcaster_unregister(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?,
  _ observer: multicast_delegate
) -> multicast_status {
  code { () throws(Status) in
    try Broadcaster.unregister(broadcaster.handle, `protocol`, observer)
  }
}

@_cdecl("multicast_broadcaster_unregister_all") @implementation
public func multicast_broadcaster_unregister_all(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?
) -> Int64 {
  counting { () throws(Status) in try Broadcaster.unregisterAll(broadcaster.handle, `protocol`) }
}

@_cdecl("multicast_broadcaster_notify") @implementation
public func multicast_broadcaster_notify(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?, _ event: UInt32,
  _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  guard payload != nil || size == 0 else { return Status.invalidArgument.count }
  return Broadcaster.notify(
    broadcaster.handle, `protocol`, Invocation(event: event, payload: payload, size: size))
}

@_cdecl("multicast_broadcaster_multicast") @implementation
public func multicast_broadcaster_multicast(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?
) -> multicast {
  do throws(Status) {
    return multicast(id: try Broadcaster.multicast(broadcaster.handle, `protocol`).rawValue)
  } catch {
    return multicast(id: 0)
  }
}
