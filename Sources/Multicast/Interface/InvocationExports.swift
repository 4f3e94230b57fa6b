import MulticastHeader

@_cdecl("multicast_invoke_with") @implementation
@_optimize(speed)
public func multicast_invoke_with(
  _ target: multicast, _ how: UnsafePointer<multicast_invocation>?,
  _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  InvocationTarget.multicast(target.handle).invoke(how, out)
}

@_cdecl("multicast_broadcaster_notify_with") @implementation
public func multicast_broadcaster_notify_with(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?,
  _ how: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  InvocationTarget.name(`protocol`, of: broadcaster.handle).invoke(how, out)
}
