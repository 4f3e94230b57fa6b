import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Like the other `invokeWithPolicies`, but for an invocation without options.
  func invokeWithPolicies(_ call: AnyCall) -> Int64 {
    if let visit = call.visit { return self.visit(visit, orUndo: nil) }
    var (owned, outcome) = (Payload?.none, multicast_outcome())
    return invokeWithPolicies(InvocationOptions(call.invocation), &owned, &outcome)
  }

  /// Invokes the multicast according to its policies.
  ///
  /// - Parameter owned: The payload if the caller has handed it over, otherwise nil. This function
  ///   takes over the payload.
  /// - Returns: the number of delegates that were called or queued, or a negative status code.
  func invokeWithPolicies(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout multicast_outcome
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      owned?.release()
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    do throws(Status) {
      let rules = try self.rules()
      if rules.isVisitOnly { throw .state }
      // Even if this thread is outside all calls, it may have deferred invocations: this invocation
      // may have been started by a payload's release function that ran between two of them.
      if rules.reentry != .recurse
        && (isInvoked(on: thread) || Deferrals.find(handle, on: thread) != nil)
      {
        if rules.reentry == .refuse { throw .state }
        try postpone(options, &owned, isLatest: rules.reentry == .latest, on: thread)
        outcome.queued = 1
        if options.isWaiting { outcome.unfinished = 1 }
        return 0
      }
    } catch {
      owned?.release()
      return error.count
    }
    let count = dispatchWithPolicies(options, &owned, &outcome, on: thread)
    invokeDeferred(on: thread)
    return count
  }

  /// Invokes the multicast now. If the multicast has a replay, keeps the invocation first.
  ///
  /// - Parameter owned: See the parameter `owned` of `invokeWithPolicies`.
  func dispatchWithPolicies(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout multicast_outcome,
    on thread: ThreadRecord
  ) -> Int64 {
    var count: Int64
    do throws(Status) {
      let hasReplay = try rules().hasReplay
      let number = hasReplay ? try keep(options, &owned, on: thread) : .max
      count = dispatch(options, &owned, &outcome, number: number)
    } catch {
      count = error.count
    }
    owned?.release()  //~ receipt_released_twice
    return count
  }

  /// Keeps an invocation that is about to begin.
  ///
  /// - Parameter owned: See the parameter `payload` of `KeptInvocation.make`.
  /// - Returns: the number of the invocation.
  func keep(
    _ options: InvocationOptions, _ owned: inout Payload?, on thread: ThreadRecord
  ) throws(Status) -> UInt {
    // Check for room first, because the invocation must not fail after it has been kept.
    guard thread.hasRoom else { throw .limit }
    let kept = try KeptInvocation.make(options, &owned)
    let stripe = self.stripe
    stripe.lock()
    while isCurrent, let slow = replay.slowRun() {
      let (thread, number) = (slow.storage.pointee.thread, slow.storage.pointee.number)
      stripe.unlock()
      let isOver = slow.waitForEnd(on: thread, number)
      stripe.lock()
      if !isOver { break }
    }
    guard isCurrent else {
      stripe.unlock()
      Allocator.free(kept)
      throw .invalidHandle
    }
    owned?.retain()  //~ kept_payload_not_retained
    var payloads = ReleasedPayloads()
    let number = replay.keep(kept, &payloads)
    stripe.unlock()
    payloads.cleanUp()
    return number
  }
}

extension KeptInvocation {
  /// Keeps an invocation together with its payload.
  ///
  /// - Parameter payload: The payload if the caller has handed it over, otherwise nil. If the
  ///   payload has to be copied, this function sets the parameter to the copy. If it fails, the
  ///   payload still belongs to the caller.
  static func make(
    _ options: InvocationOptions, _ payload: inout Payload?
  ) throws(Status) -> Address {
    if payload == nil && options.needsCopy {
      var hasNoCopy = false
      payload = try Dispatch.makePayload(options, &hasNoCopy)
    }
    let given = options.invocation
    let bytes = payload.map { $0.bytes } ?? given.payload
    return try Allocator.make(
      KeptInvocation(
        invocation: Invocation(event: given.event, payload: bytes, size: given.size),
        payload: payload))
  }
}

/// The invocations of one multicast that a thread has deferred.
///
/// Deferred invocations are linked to the thread's record, where the library finds them when the
/// thread ends and after a fork. The thread changes the lists under the waits' lock, so a fork
/// finds them in a consistent state.
struct Deferrals {
  fileprivate struct Storage: Linked {
    let multicast: Handle
    var kept = KeptInvocations()
    /// Whether the thread is currently making these invocations.
    var isRunning = false
    var next: UnsafeMutablePointer<Storage>?
  }

  private static let limit: UInt32 = 65536

  fileprivate let storage: UnsafeMutablePointer<Storage>

  private init(_ storage: UnsafeMutablePointer<Storage>) { self.storage = storage }

  static func find(_ multicast: Handle, on thread: ThreadRecord) -> Deferrals? {
    thread.deferrals?.first { $0.pointee.multicast == multicast }.map { Deferrals($0) }
  }

  private static func findOrMake(
    _ multicast: Handle, on thread: ThreadRecord
  ) throws(Status) -> Deferrals {
    if let known = find(multicast, on: thread) { return known }
    let made = try Allocator.make(Storage(multicast: multicast, next: thread.deferrals))
    Lock.waits.lock()
    thread.deferrals = made
    Lock.waits.unlock()
    return Deferrals(made)
  }

  // MARK: - Adding

  /// Defers an invocation.
  ///
  /// - Parameters:
  ///   - invocation: Still belongs to the caller if this function fails.
  ///   - isLatest: Whether the invocation replaces all invocations that have already been deferred.
  static func keep(
    _ invocation: KeptInvocation.Address, isLatest: Bool, _ multicast: Handle,
    on thread: ThreadRecord
  ) throws(Status) {
    let deferrals = try findOrMake(multicast, on: thread)
    if !isLatest && deferrals.storage.pointee.kept.count == limit { throw .limit }
    var released = ReleasedPayloads()
    Lock.waits.lock()
    if isLatest { deferrals.storage.pointee.kept.dropAll(&released) }
    deferrals.storage.pointee.kept.append(invocation)
    Lock.waits.unlock()
    released.cleanUp()
  }

  // MARK: - Making the invocations

  /// Makes all deferred invocations, including any that are deferred while this function runs. The
  /// thread must be outside all calls from the multicast.
  fileprivate func run(_ multicast: Multicast, on thread: ThreadRecord) {
    storage.pointee.isRunning = true
    while true {
      Lock.waits.lock()
      guard let kept = storage.pointee.kept.takeFirst() else { break }
      Lock.waits.unlock()
      var (owned, outcome) = (kept.payload, multicast_outcome())
      // The payload is released even if the multicast no longer exists.
      _ = multicast.dispatchWithPolicies(
        InvocationOptions(kept.invocation), &owned, &outcome, on: thread)
    }
    storage.unlink(from: &thread.deferrals)
    Lock.waits.unlock()
    Allocator.free(storage)
  }

  // MARK: - Threads that end, and fork

  /// Drops the deferred invocations of a thread that no longer exists.
  static func dropAll(of thread: ThreadRecord, _ released: inout ReleasedPayloads) {
    while let storage = thread.deferrals {
      thread.deferrals = storage.pointee.next
      storage.pointee.kept.dropAll(&released)
      Allocator.free(storage)
    }
  }
}

extension ThreadRecord {
  fileprivate var deferrals: UnsafeMutablePointer<Deferrals.Storage>? {
    get { storage.pointee.deferrals?.assumingMemoryBound(to: Deferrals.Storage.self) }
    nonmutating set { storage.pointee.deferrals = UnsafeMutableRawPointer(newValue) }
  }
}

extension Multicast {
  /// Makes the invocations that this thread has deferred during the current operation. Called at
  /// the end of every operation that calls delegates or locks contexts.
  func invokeDeferred(on thread: ThreadRecord) {
    if thread.storage.pointee.deferrals != nil { invokeDeferredSlowly(on: thread) }
  }

  private func invokeDeferredSlowly(on thread: ThreadRecord) {
    guard let deferrals = Deferrals.find(handle, on: thread),
      !deferrals.storage.pointee.isRunning, !isInvoked(on: thread)
    else { return }
    deferrals.run(self, on: thread)
  }

  /// Whether this thread is inside an invocation or a visit of this multicast. The result is
  /// correct even if the slot has been reused: the frame protects the list that it names, and this
  /// list contains its multicast's handle.
  func isInvoked(on thread: ThreadRecord) -> Bool {
    thread.isInside(target) { list in
      let address = InvocationList.Address(bitPattern: list)
      return InvocationList(address.unsafelyUnwrapped).header.owner == handle
    }
  }

  /// Defers an invocation of this multicast.
  ///
  /// - Parameter owned: The payload if the caller has handed it over, otherwise nil. This function
  ///   takes over the payload unless it fails.
  func postpone(
    _ options: InvocationOptions, _ owned: inout Payload?, isLatest: Bool, on thread: ThreadRecord
  ) throws(Status) {
    let kept = try KeptInvocation.make(options, &owned)
    do throws(Status) {
      try Deferrals.keep(kept, isLatest: isLatest, handle, on: thread)
    } catch {
      Allocator.free(kept)
      throw error
    }
  }
}
