import MulticastHeader

@_cdecl("multicast_invoke_with") @implementation
@_optimize(speed)
public func multicast_invoke_with(
  _ target: multicast, _ how: UnsafePointer<multicast_invocation>?,
  _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  invoke(.multicast(target), how, out)
}

@_cdecl("multicast_broadcaster_notify_with") @implementation
public func multicast_broadcaster_notify_with(
  _ broadcaster: multicast_broadcaster, _ protocol: UnsafePointer<CChar>?,
  _ how: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  invoke(.name(`protocol`, of: broadcaster), how, out)
}

/// What is invoked. A type and no closure, so that the code of `invoke` exists once.
private enum InvocationTarget {
  case multicast(multicast)
  case name(UnsafePointer<CChar>?, of: multicast_broadcaster)

  @inline(__always)
  func resolve() throws(Status) -> Multicast? {
    switch self {
    case .multicast(let multicast): try findPlain(multicast)
    case .name(let name, let broadcaster): try Broadcaster.find(broadcaster.handle, name)
    }
  }

  /// That of the multicast, if the caller has it.
  var handle: Handle {
    if case .multicast(let multicast) = self { multicast.handle } else { .none }
  }

  /// Whether the caller has no handle of the multicast.
  var isName: Bool { if case .name = self { true } else { false } }
}

@inline(never)
private func invoke(
  _ target: InvocationTarget, _ given: UnsafePointer<multicast_invocation>?,
  _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  guard let options = InvocationOptions(given) else { return Status.invalidArgument.count }
  var outcome = Dispatch.Outcome()
  var isFoundByName = false
  let canWrite = out.map { StructSize.canFill($0, smallest: StructSize.outcome) } ?? true
  let count = Dispatch.invoke(options, &outcome, target.handle) { () throws(Status) in
    if !canWrite { throw .invalidArgument }
    let multicast = try target.resolve()
    isFoundByName = target.isName
    return multicast
  }
  if let out, canWrite, count != Status.invalidArgument.count { outcome.write(to: out) }
  // The caller may have destroyed the multicast of the name.
  return isFoundByName && count == Status.invalidHandle.count ? 0 : count
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
