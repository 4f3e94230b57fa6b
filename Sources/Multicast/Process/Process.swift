import MulticastShims
import Synchronization

/// The end of threads, and `fork`.
enum Process {
  /// Called when a thread ends. If it ended inside a call, this withdraws its frames.
  fileprivate static func threadDidEnd(_ block: UnsafeMutableRawPointer) {
    Lock.checkNoneIsHeld()
    CallerCode.checkNoReleaseRuns()
    let record = ThreadRecord(block.assumingMemoryBound(to: ThreadRecord.Storage.self))
    let wasInside = record.isInside
    if wasInside {
      var payloads = ReleasedPayloads()
      record.clear {
        // The queue counts a call that was taken out as delivered, and so does a thread that waits
        // for the call.
        release($0, isMade: $1.isRun, &payloads)
      } willLeave: { frame, target in
        if target.isRun { Queue.runDidEnd(target, frame, of: record) }
      } didLeave: {
        didLeave($0)
      }
      // The thread is now outside all calls, so its further invocations are not deferred.
      Lock.waits.lock()
      Deferrals.dropAll(of: record, &payloads)  //~ deferred_of_thread_kept
      Lock.waits.unlock()
      Replay.Run.endAll(of: record)
      // The wake-up comes before the release functions: one of them may wait for a thread that
      // waits for these calls.
      Waits.wake()
      payloads.cleanUp()
    }
    shims_set_thread_ending()
    ThreadRegistry.leave(record)
    if wasInside { PendingRemovals.callsDidEnd() }
  }

  private static func release(
    _ payload: UInt, isMade: Bool, _ payloads: inout ReleasedPayloads
  ) {
    let payload = Payload(at: UnsafeMutableRawPointer(bitPattern: payload).unsafelyUnwrapped)
    payloads.release(payload, isMade: isMade)
  }

  /// Takes the last steps of an invocation that will not return.
  private static func didLeave(_ target: Target) {
    if target.isInvocation { Multicast(target).reclaim() }
  }

  // MARK: - fork

  /// The child has only this thread. The calls of all other threads are over.
  fileprivate static func didBecomeChild() {
    Lock.unlockAll()
    Lock.checkFork(holdsAll: false)
    CallerCode.noteProcess()
    Fork.didBecomeChild()
    shims_locate_none_in_child()
    Fence.restartInChild()
    var payloads = ReleasedPayloads()
    for record in ThreadRegistry.all where !(record == ThreadRecord.current) {
      Deferrals.dropAll(of: record, &payloads)
      Replay.Run.endAll(of: record)
    }
    ThreadRegistry.forgetOthers(than: .current) { payload, _ in
      release(payload, isMade: false, &payloads)
    } didLeave: {
      didLeave($0)
    }
    payloads.cleanUp()
    if Queue.isInUse { Queue.restartAllInChild() }
    Waits.forgetSleepersInChild()
    PendingRemovals.deferAllInChild()
    PendingRemovals.callsDidEnd()
    Lifetime.completeAllInChild()
    Policies.notifyAllInChild()
    Broadcaster.forgetDestroyersInChild()
  }
}

@_cdecl("shims_thread_did_end") @implementation
public func shims_thread_did_end(_ block: UnsafeMutableRawPointer?) {
  if let block { Process.threadDidEnd(block) }
}

/// Takes all locks, so that no other thread is changing anything when the child begins.
@_cdecl("shims_before_fork") @implementation
public func shims_before_fork() {
  Lock.checkFork(holdsAll: true)
  Lock.lockAll()
}

@_cdecl("shims_after_fork_in_parent") @implementation
public func shims_after_fork_in_parent() {
  Lock.unlockAll()
  Lock.checkFork(holdsAll: false)
}

@_cdecl("shims_after_fork_in_child") @implementation
public func shims_after_fork_in_child() { Process.didBecomeChild() }
