import CMulticast

@_cdecl("multicast_invoke_with") @implementation
public func multicast_invoke_with(
  _ target: multicast, _ how: UnsafePointer<multicast_invocation>?,
  _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  invoke(how, out) { () throws(Status) in try find(target) }
}

@_cdecl("multicast_broadcaster_notify_with") @implementation
public func multicast_broadcaster_notify_with(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?,
  _ how: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  var isFound = false
  let count = invoke(how, out) { () throws(Status) in
    let multicast = try Broadcaster.find(broadcaster.handle, `protocol`)
    isFound = true
    return multicast
  }
  // The caller may have destroyed the multicast of the name.
  return isFound && count == Status.invalidHandle.count ? 0 : count
}

private func invoke(
  _ given: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?,
  _ find: () throws(Status) -> Multicast?
) -> Int64 {
  guard let options = InvocationOptions(given) else { return Status.invalidArgument.count }
  var outcome = Dispatch.Outcome()
  let canWrite = out.map { StructSize.canFill($0, smallest: StructSize.outcome) } ?? true
  let count = Dispatch.invoke(options, &outcome) { () throws(Status) in
    if !canWrite { throw .invalidArgument }
    return try find()
  }
  if let out, canWrite, count != Status.invalidArgument.count { outcome.write(to: out) }
  return count
}

extension Dispatch.Outcome {
  fileprivate func write(to out: UnsafeMutablePointer<multicast_outcome>) {
    _ = StructSize.prepareOutput(out, smallest: StructSize.outcome)
    out.pointee.flags = 0
    out.pointee.called = called
    out.pointee.queued = queued
    out.pointee.refused = refused
    out.pointee.finished = made
    out.pointee.unfinished = unfinished
  }
}
