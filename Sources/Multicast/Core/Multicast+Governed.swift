import MulticastHeader

/// Invocations of multicasts that have policies.
extension Multicast {
  /// Invokes it as its policies say.
  ///
  /// - Parameter owned: The payload, if it was handed over. It belongs to this function.
  /// - Returns: how many delegates were called or queued, or the number of a status.
  @inline(never)
  func invokeGoverned(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout Dispatch.Outcome
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      owned?.release()
      return Status.outOfMemory.count
    }
    defer { if ThreadRegistry.leaveIfEnding(thread, hasEntered) && Queue.isInUse { Waits.wake() } }
    do throws(Status) {
      if options.isContradictory { throw .invalidArgument }
      let rules = try self.rules()
      if rules.isVisitOnly { throw .state }
      // What is to be made first may wait although this thread is in no call: a payload's release
      // function runs between two of them.
      if rules.reentry != .recurse
        && (isInvoked(on: thread) || Deferrals.find(handle, on: thread) != nil)
      {
        if rules.reentry == .refuse { throw .state }
        let result = postpone(options, owned, isLatest: rules.reentry == .latest, on: thread)
        if result == 0 {
          outcome.queued = 1
          if options.isWaiting { outcome.unfinished = 1 }
        }
        return result
      }
    } catch {
      owned?.release()
      return error.count
    }
    let count = dispatch(options, &owned, &outcome)
    invokeDeferred(on: thread)
    return count
  }
}
