import MulticastHeader

/// The target of an invocation with options.
enum InvocationTarget {
  case multicast(Handle)
  case name(UnsafePointer<CChar>?, of: Handle)

  /// - Returns: how many were called or queued, or the number of a status.
  func invoke(
    _ given: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
  ) -> Int64 {
    guard let options = InvocationOptions(given) else { return Status.invalidArgument.count }
    var outcome = Dispatch.Outcome()
    let canWrite = out.map { StructSize.canFill($0, smallest: StructSize.outcome) } ?? true
    let count = Dispatch.invoke(options, &outcome) { () throws(Status) in
      if !canWrite { throw .invalidArgument }
      return try find()
    } _: {
      publish(options.invocation, after: $0, &$1)
    }
    if let out, canWrite, count != Status.invalidArgument.count { outcome.write(to: out) }
    return count
  }

  /// - Returns: nil if there is no such name.
  private func find() throws(Status) -> Multicast? {
    switch self {
    case .multicast(let handle):
      guard let multicast = Multicast(slotOf: handle) else { throw .invalidHandle }
      return multicast
    case .name(let name, let broadcaster):
      return try Broadcaster.find(broadcaster, name)
    }
  }

  /// - Returns: the result of the invocation.
  private func publish(
    _ invocation: Invocation, after result: Int64, _ owned: inout Payload?
  ) -> Int64 {
    guard case .name(let name, let broadcaster) = self else { return result }
    // The caller may have destroyed the multicast of the name.
    let count = result == Status.invalidHandle.count ? 0 : result
    return Broadcaster.publish(broadcaster, name, invocation, after: count, &owned)
  }
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
