import MulticastHeader

@_cdecl("multicast_lifetime_create") @implementation
public func multicast_lifetime_create() -> multicast_lifetime {
  multicast_lifetime(id: creating { () throws(Status) in try Lifetime.create() })
}

@_cdecl("multicast_lifetime_end") @implementation
public func multicast_lifetime_end(_ lifetime: multicast_lifetime) -> multicast_status {
  Lifetime.end(lifetime.handle).code
}

@_cdecl("multicast_lifetime_end_within") @implementation
public func multicast_lifetime_end_within(
  _ lifetime: multicast_lifetime, _ timeout_ns: UInt64
) -> multicast_status {
  Lifetime.end(lifetime.handle, as: .owned, .nanoseconds(timeout_ns)).code
}

@_cdecl("multicast_lifetime_is_valid") @implementation
public func multicast_lifetime_is_valid(_ lifetime: multicast_lifetime) -> Bool {
  Lifetime.isValid(lifetime.handle)
}

@_cdecl("multicast_lifetime_count") @implementation
public func multicast_lifetime_count(_ lifetime: multicast_lifetime) -> Int64 {
  counting { () throws(Status) in try Lifetime.count(lifetime.handle) }
}
