import MulticastShims
import Synchronization

/// Handles the end of threads, and `fork`.
enum Process {
  /// Called when a thread ends. If the thread has ended inside a call, withdraws its frames.
  fileprivate static func threadDidEnd(_ block: UnsafeMutableRawPointer) {
    Lock.checkNoneIsHeld()
    CallerCode.checkNoReleaseRuns()
    let record = ThreadRecord(block.assumingMemoryBound(to: ThreadRecord.Storage.self))
    let wasInside = record.isInside
    if wasInside {
      var payloads = ReleasedPayloads()
      record.clear {
        // A call that has been taken out of its queue counts as delivered in the queue's
        // statistics. The call therefore also counts as made for a thread that waits for it.
        release($0, isMade: $1.isRun, &payloads)
      } willLeave: { frame, target in
        if target.isRun { Queue.runDidEnd(target, frame, of: record) }
      } didLeave: {
        didLeave($0)
      }
      // The thread is now outside all calls, so it no longer defers invocations.
      Lock.waits.lock()
      Deferrals.dropAll(of: record, &payloads)  //~ deferred_of_thread_kept
      Lock.waits.unlock()
      Replay.Run.endAll(of: record)
      // Wake other threads before running release functions, because a release function may wait
      // for a thread that is waiting for the calls that have just ended.
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

  /// Performs the last steps of an invocation whose thread has ended inside a call.
  private static func didLeave(_ target: Target) {
    if target.isInvocation { Multicast(target).reclaim() }
  }

  // MARK: - fork

  /// Called in the child of a fork, in which only this thread exists. The calls on all other
  /// threads have ended.
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

/// Takes all locks, so that no other thread is changing any data at the moment of the fork.
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
