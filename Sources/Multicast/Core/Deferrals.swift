import MulticastShims
import Synchronization

/// An invocation that waits until the one is over inside of which it began.
private struct Deferred {
  var invocation: Invocation
  /// What is released when it is over; nil if it passes the caller's pointer itself.
  var payload: Payload?
  var next: UnsafeMutablePointer<Deferred>?

  private static var size: Int { MemoryLayout<Deferred>.stride }
  private static let alignment = 16

  /// - Returns: nil if out of memory. The payload is still the caller's then.
  static func allocate(
    _ invocation: Invocation, _ payload: Payload?
  ) -> UnsafeMutablePointer<Deferred>? {
    guard let block = Allocator.allocate(size: size, alignment: alignment) else { return nil }
    let deferred = block.bindMemory(to: Deferred.self, capacity: 1)
    deferred.initialize(to: Deferred(invocation: invocation, payload: payload, next: nil))
    return deferred
  }

  static func deallocate(_ deferred: UnsafeMutablePointer<Deferred>) {
    Allocator.deallocate(deferred, size: size, alignment: alignment)
  }
}

/// The invocations that a thread has deferred in one multicast.
///
/// They are found through the thread's record, which a fork and the end of the thread find. The
/// thread changes them under the waits' lock: so a fork finds whole chains.
struct Deferrals {
  fileprivate struct Storage {
    let multicast: Handle
    var first: UnsafeMutablePointer<Deferred>? = nil
    var last: UnsafeMutablePointer<Deferred>? = nil
    var count: UInt32 = 0
    /// Whether the thread is making them.
    var isRunning = false
    var next: UnsafeMutablePointer<Storage>?
  }

  private static let limit: UInt32 = 65536
  private static let alignment = 16

  fileprivate let storage: UnsafeMutablePointer<Storage>

  private init(_ storage: UnsafeMutablePointer<Storage>) { self.storage = storage }

  private static func first(of thread: ThreadRecord) -> UnsafeMutablePointer<Storage>? {
    thread.storage.pointee.deferrals?.assumingMemoryBound(to: Storage.self)
  }

  /// Those of a multicast; nil if nothing is deferred.
  static func find(_ multicast: Handle, on thread: ThreadRecord) -> Deferrals? {
    var next = first(of: thread)
    while let current = next {
      if current.pointee.multicast == multicast { return Deferrals(current) }
      next = current.pointee.next
    }
    return nil
  }

  /// Those of a multicast, which are made if there are none yet.
  ///
  /// - Returns: nil if out of memory.
  private static func findOrMake(_ multicast: Handle, on thread: ThreadRecord) -> Deferrals? {
    if let known = find(multicast, on: thread) { return known }
    let size = MemoryLayout<Storage>.stride
    guard let block = Allocator.allocate(size: size, alignment: alignment) else { return nil }
    let made = block.bindMemory(to: Storage.self, capacity: 1)
    Lock.waits.lock()
    made.initialize(to: Storage(multicast: multicast, next: first(of: thread)))
    thread.storage.pointee.deferrals = UnsafeMutableRawPointer(made)
    Lock.waits.unlock()
    return Deferrals(made)
  }

  // MARK: - Adding

  /// Defers an invocation.
  ///
  /// - Parameters:
  ///   - payload: What it owns, or nil. If this fails, the payload is still the caller's.
  ///   - isLatest: Whether it takes the place of those that wait.
  static func append(
    _ invocation: Invocation, _ payload: Payload?, isLatest: Bool, _ multicast: Handle,
    on thread: ThreadRecord
  ) -> Status {
    guard let deferrals = findOrMake(multicast, on: thread) else { return .outOfMemory }
    if !isLatest && deferrals.storage.pointee.count == limit { return .limit }
    guard let deferred = Deferred.allocate(invocation, payload) else { return .outOfMemory }
    var released = ReleasedPayloads()
    Lock.waits.lock()
    if isLatest { deferrals.dropAll(&released) }
    if let last = deferrals.storage.pointee.last {
      last.pointee.next = deferred
    } else {
      deferrals.storage.pointee.first = deferred
    }
    deferrals.storage.pointee.last = deferred
    deferrals.storage.pointee.count &+= 1
    Lock.waits.unlock()
    released.finish()
    return .ok
  }

  /// The waits' lock is held, or no thread is left that could change them.
  private func dropAll(_ released: inout ReleasedPayloads) {
    while let deferred = takeFirst() {
      released.release(deferred.pointee.payload)  //~ deferred_payload_lost
      Deferred.deallocate(deferred)
    }
  }

  private func takeFirst() -> UnsafeMutablePointer<Deferred>? {
    guard let deferred = storage.pointee.first else { return nil }
    storage.pointee.first = deferred.pointee.next
    if deferred.pointee.next == nil { storage.pointee.last = nil }
    storage.pointee.count &-= 1
    return deferred
  }

  // MARK: - Making them

  /// Makes them all, those included that are deferred meanwhile. The thread is in no call of the
  /// multicast.
  fileprivate func run(_ multicast: Multicast, on thread: ThreadRecord) {
    storage.pointee.isRunning = true
    while true {
      Lock.waits.lock()
      guard let deferred = takeFirst() else { break }
      Lock.waits.unlock()
      let (invocation, payload) = (deferred.pointee.invocation, deferred.pointee.payload)
      Deferred.deallocate(deferred)
      var (owned, outcome) = (payload, Dispatch.Outcome())
      // Released also if the multicast does not exist any more.
      _ = multicast.dispatch(InvocationOptions(invocation), &owned, &outcome)
    }
    remove(from: thread)
    Lock.waits.unlock()
    deallocate()
  }

  /// The waits' lock is held.
  private func remove(from thread: ThreadRecord) {
    var previous: UnsafeMutablePointer<Storage>? = nil
    var next = Self.first(of: thread)
    while let current = next, current != storage {
      previous = current
      next = current.pointee.next
    }
    if let previous {
      previous.pointee.next = storage.pointee.next
    } else {
      thread.storage.pointee.deferrals = UnsafeMutableRawPointer(storage.pointee.next)
    }
  }

  private func deallocate() {
    Allocator.deallocate(
      storage, size: MemoryLayout<Storage>.stride, alignment: Self.alignment)
  }

  // MARK: - Threads that end, and fork

  /// Drops what a thread has deferred that does not exist any more.
  static func dropAll(of thread: ThreadRecord, _ released: inout ReleasedPayloads) {
    while let storage = first(of: thread) {
      thread.storage.pointee.deferrals = UnsafeMutableRawPointer(storage.pointee.next)
      let deferrals = Deferrals(storage)
      deferrals.dropAll(&released)
      deferrals.deallocate()
    }
  }
}

extension Multicast {
  /// Makes what was deferred inside of what this thread has just ended. Called at the end of
  /// whatever calls delegates or locks contexts.
  @inline(__always)
  func invokeDeferred(on thread: ThreadRecord) {
    if thread.storage.pointee.deferrals != nil { invokeDeferredSlowly(on: thread) }
  }

  @inline(never)
  private func invokeDeferredSlowly(on thread: ThreadRecord) {
    guard let deferrals = Deferrals.find(handle, on: thread),
      !deferrals.storage.pointee.isRunning, !isInvoked(on: thread)
    else { return }
    deferrals.run(self, on: thread)
  }

  /// Whether this thread is inside an invocation or a visit of this multicast. That a slot has had
  /// several occupants does not matter: a frame keeps the list that it reads, which has its owner.
  func isInvoked(on thread: ThreadRecord) -> Bool {
    thread.isInside(target) { list in
      let address = InvocationList.Address(bitPattern: list)
      return InvocationList(address.unsafelyUnwrapped).header.owner == handle
    }
  }

  /// Defers an invocation of this multicast.
  ///
  /// - Parameter owned: The payload, if it was handed over. It belongs to this function.
  /// - Returns: 0, or the number of a status.
  func postpone(
    _ options: InvocationOptions, _ owned: Payload?, isLatest: Bool, on thread: ThreadRecord
  ) -> Int64 {
    var payload = owned
    if payload == nil && options.needsCopy {
      var hasNoCopy = false
      payload = Dispatch.makePayload(options, &hasNoCopy)
      if payload == nil { return Status.outOfMemory.count }
    }
    let given = options.invocation
    let invocation = Invocation(
      event: given.event, payload: payload.map { $0.bytes } ?? given.payload, size: given.size)
    let status = Deferrals.append(
      invocation, payload, isLatest: isLatest, handle, on: thread)
    if status == .ok { return 0 }
    payload?.release()
    return status.count
  }
}
