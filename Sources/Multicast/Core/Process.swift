import MulticastShims

/// What the library asks of the process that it lives in, once.
enum Process {
  nonisolated(unsafe) private static var isStarted = false  // guarded by the slab lock

  /// How many forks ago the library was started.
  nonisolated(unsafe) private(set) static var generation: UInt32 = 0

  /// Puts another allocator in the place of libc's, before memory is taken.
  static func replaceAllocator(
    _ context: UnsafeMutableRawPointer?, _ allocate: @escaping Allocator.Allocate,
    _ deallocate: @escaping Allocator.Deallocate
  ) -> Status {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if isStarted { return .state }
    Allocator.replace(context: context, allocate: allocate, deallocate: deallocate)
    return .ok
  }

  /// Called under the slab lock, before the first slab: so before there is anything to invoke.
  static func start() -> Bool {
    isStarted || startOnce()
  }

  @inline(never)
  private static func startOnce() -> Bool {
    CallerCode.noteProcess()
    Fence.start()
    guard shims_condition_init(shims_get_call_condition()), shims_exit_key_init(threadEnds) else {
      return false
    }
    guard shims_watch_fork(beforeFork, afterForkInParent, afterForkInChild) else {
      shims_exit_key_destroy()
      return false
    }
    isStarted = true
    return true
  }

  /// The thread may have ended inside a call; then nobody but us takes its frames away.
  private static let threadEnds: @convention(c) (UnsafeMutableRawPointer?) -> Void = { block in
    guard let block else { return }
    Lock.checkNoneIsHeld()
    CallerCode.checkNoReleaseRuns()
    let record = ThreadRecord(block.assumingMemoryBound(to: ThreadRecord.Storage.self))
    let wasInside = record.isInside
    if wasInside {
      record.clear { multicast, payload in
        hasLeft(multicast, payload)
        if Frame.isRun(multicast) { Delivery.runEnds.unsafelyUnwrapped(multicast) }
      }
    }
    shims_set_thread_ending()
    ThreadRegistry.leave(record)
    if wasInside {
      Departures.attendAll()
    } else if Delivery.isInUse {
      Departures.wake()  // who waits for this thread to run a queue once more
    }
  }

  /// Does what an invocation or run would have done that has no end.
  private static func hasLeft(_ multicast: UInt, _ payload: UInt) {
    if let payload = UnsafeMutableRawPointer(bitPattern: payload) {
      Delivery.letGo.unsafelyUnwrapped(payload)
    }
    if Frame.isInvocation(multicast) { Multicast(address: multicast).flush() }
  }

  // MARK: - fork

  /// With every lock taken, no other thread is in the middle of anything when the child begins.
  private static let beforeFork: @convention(c) () -> Void = {
    Lock.checkFork(holdsAll: true)
    Lock.forEach { $0.lock() }
  }

  private static let afterForkInParent: @convention(c) () -> Void = {
    Lock.forEach { $0.unlock() }
    Lock.checkFork(holdsAll: false)
  }

  /// The child has this thread alone: what others were calling is not being called any more.
  private static let afterForkInChild: @convention(c) () -> Void = {
    Lock.resetAll()
    Lock.checkFork(holdsAll: false)
    CallerCode.noteProcess()
    _ = shims_condition_init(shims_get_call_condition())
    generation &+= 1
    Fence.restartInChild()
    ThreadRegistry.forgetOthers(than: .current, hasLeft)
    Delivery.restartInChild?()
    Departures.adoptInChild()
    Departures.attendAll()
    Lifetime.finishAllInChild()
  }
}
