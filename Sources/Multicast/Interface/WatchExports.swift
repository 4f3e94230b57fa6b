import MulticastHeader

@_cdecl("multicast_set_watch") @implementation
public func multicast_set_watch(
  _ target: multicast, _ watch: UnsafePointer<multicast_watch>?
) -> multicast_status {
  code { () throws(Status) in try Watch.set(target.handle, watch) }
}

@_cdecl("multicast_token_statistics") @implementation
public func multicast_token_statistics(
  _ token: multicast_token, _ out: UnsafeMutablePointer<multicast_token_stats>?
) -> multicast_status {
  Tally.read(token.handle, into: out).code
}

@_cdecl("multicast_watch_init") @implementation
public func multicast_watch_init(
  _ watch: UnsafeMutablePointer<multicast_watch>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(watch, size, smallest: StructSize.watch).code
}

@_cdecl("multicast_token_stats_init") @implementation
public func multicast_token_stats_init(
  _ stats: UnsafeMutablePointer<multicast_token_stats>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(stats, size, smallest: StructSize.tokenStats).code
}
