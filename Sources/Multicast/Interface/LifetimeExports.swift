import CMulticast

@_cdecl("multicast_lifetime_create") @implementation
public func multicast_lifetime_create() -> multicast_lifetime {
  do throws(Status) { return multicast_lifetime(id: try Lifetime.create().rawValue) } catch {
    return multicast_lifetime(id: 0)
  }
}

@_cdecl("multicast_lifetime_end") @implementation
public func multicast_lifetime_end(_ lifetime: multicast_lifetime) -> multicast_status {
  Lifetime.end(lifetime.handle).code
}

@_cdecl("multicast_lifetime_count") @implementation
public func multicast_lifetime_count(_ lifetime: multicast_lifetime) -> Int64 {
  counting { () throws(Status) in try Lifetime.count(lifetime.handle) }
}
