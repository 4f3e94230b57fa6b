import MulticastHeader

/// The target of an invocation with options.
enum InvocationTarget {
  case multicast(Handle)
  case name(UnsafePointer<CChar>?, of: Handle)

  /// - Returns: the number of delegates that were called or queued, or a negative status code.
  func invoke(
    _ given: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
  ) -> Int64 {
    guard let options = InvocationOptions(given) else { return Status.invalidArgument.count }
    let canWrite = out.map { StructSize.canFill($0, smallest: StructSize.outcome) } ?? true
    var outcome = multicast_outcome()
    let count = invoke(options, canWrite, &outcome)
    if let out, canWrite, count != Status.invalidArgument.count {
      _ = StructSize.write(&outcome, to: out, smallest: StructSize.outcome)
    }
    return count
  }

  /// Inlined, because invocations nest up to 256 levels deep, and a common stack frame for both
  /// functions saves 16 bytes per level.
  @inline(__always)
  private func invoke(
    _ options: InvocationOptions, _ canWrite: Bool, _ outcome: inout multicast_outcome
  ) -> Int64 {
    var owned: Payload? = nil
    var count: Int64 = 0
    // One deadline applies to the observers of the name and of its prefixes.
    let deadline = options.deadline
    do throws(Status) {
      if options.isOwned { owned = try Dispatch.takeOver(options) }
      if options.isContradictory || !canWrite { throw .invalidArgument }
      if let multicast = try find() {
        if multicast.hasPolicies {
          return multicast.invokeWithPolicies(options, &owned, &outcome)
        }
        count = multicast.dispatch(options, &owned, &outcome, until: deadline)
      }
      count = publish(options, deadline, after: count, &owned, &outcome)
    } catch {
      count = error.count
    }
    owned?.release()  //~ payload_of_failure_lost
    return count
  }

  private func find() throws(Status) -> Multicast? {
    switch self {
    case .multicast(let handle):
      // Refuse an invalid handle before reading the policies, because the caller may have guessed
      // the handle of a multicast that is created a moment later.
      return try Multicast.find(handle)
    case .name(let name, let broadcaster):
      return try Broadcaster.find(broadcaster, name)
    }
  }

  private func publish(
    _ options: InvocationOptions, _ deadline: Timeout, after result: Int64,
    _ owned: inout Payload?, _ outcome: inout multicast_outcome
  ) -> Int64 {
    guard case .name(let name, let handle) = self else { return result }
    // A caller may have destroyed the multicast of the name.
    var count = result == Status.invalidHandle.count ? 0 : result
    let broadcaster = Broadcaster(slotOf: handle).unsafelyUnwrapped  // as in `find`
    if broadcaster.hasPrefixes {
      count = broadcaster.deliverToPrefixes(
        name, options, deadline, after: count, &owned, &outcome)
    }
    return broadcaster.publish(name, options.invocation, after: count, &owned)
  }
}
