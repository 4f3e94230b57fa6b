import MulticastHeader
import MulticastShims
import Synchronization

/// The reports of `multicast_dump` and `multicast_describe`. The reports list all objects, and each
/// thread's calls and wait.
///
/// A report must also work in a program that hangs or has been stopped by a debugger. So a report
/// waits for other threads only for a limited time, allocates no memory, and needs no thread
/// record. It follows three rules when it reads data:
///
/// - *Handles and frames* are read without a lock. Slots, slabs, thread records and their blocks
///   are never unmapped, and the fields that a report reads are atomic. The acquire loads pair with
///   the releases that publish slabs, records and frames. A report executes no heavy fence. So it
///   may miss a call that begins or ends during the report, but not a call that runs during the
///   whole report.
/// - *All other data* is read under the lock that guards it, and copied to the stack. A list,
///   details or a label cannot be freed while their stripe's lock is held, and a sleeping thread
///   cannot leave its list without the waits' lock. Unlike an invocation, a report does not publish
///   a frame to protect the data. If it did, it would have to register its thread as an invoker,
///   which requires the same lock. Removals from a multicast with a single invoker would then have
///   to execute fences.
/// - A report only *tries* each lock, for at most half a second. Threads hold locks for
///   microseconds, so a thread that holds a lock for half a second has stopped. The report then
///   names the object that it could not read. After four such failures, it no longer waits for
///   locks at all.
///
/// The report holds no lock when it calls the writer, and never holds more than one lock at a time.
/// Each line describes the state at the moment when its data was read.
struct Report {
  var text: Text
  /// The number of further locks for which the report may wait.
  private var waitsLeft = 4

  init(_ text: Text) { self.text = text }

  /// The result of an attempt to take a lock: whether the report holds the lock and, if not, why.
  enum Access { case locked, stale, refused }

  /// Called after an attempt to take a lock has failed. Pauses before the next attempt.
  ///
  /// - Parameter end: The time at which to stop waiting; 0 in the first call for a lock.
  /// - Returns: false if the lock must not be tried again.
  private mutating func waits(_ end: inout UInt64) -> Bool {
    let now = shims_now_ns()
    if end == 0 { end = now &+ 500_000_000 }
    if waitsLeft == 0 { return false }
    if now >= end {
      waitsLeft &-= 1
      return false
    }
    shims_backoff()
    return true
  }

  @inline(never)
  mutating func take(_ lock: Lock) -> Bool {
    var end: UInt64 = 0
    while !lock.tryLock() { if !waits(&end) { return false } }
    return true
  }

  // MARK: - Contents

  static func dump(_ text: Text) {
    var report = Report(text)
    report.text.add(
      "libmulticast %d.%d.%d in process %d\n", UInt64(MULTICAST_VERSION_MAJOR),
      UInt64(MULTICAST_VERSION_MINOR), UInt64(MULTICAST_VERSION_PATCH), shims_get_process_id())
    for index in Multicast.pool.directory.indices where report.text.goesOn {
      let multicast = Multicast(slot: index)
      if multicast.handle.isOfMulticast { report.add(multicast, withCalls: false) }
    }
    for index in Queue.pool.directory.indices where report.text.goesOn {
      let queue = Queue(slot: Queue.pool.header(index))
      if queue.handle.kind == .queue { report.add(queue) }
    }
    for index in Lifetime.pool.directory.indices where report.text.goesOn {
      report.addLifetime(Lifetime.pool.header(index).pointee.id.load(ordering: .relaxed))
    }
    report.addThreads(nil)
  }

  static func describe(_ multicast: Multicast, _ text: Text) -> Status {
    if !multicast.isCurrent { return .invalidHandle }
    var report = Report(text)
    report.add(multicast, withCalls: true)
    return .ok
  }
}

extension Report {
  mutating func add(_ queue: Queue) {
    guard take(queue.lock) else {
      return text.add(
        "\nqueue %x: a thread is changing it and does not go on\n", queue.handle.rawValue)
    }
    let isCurrent = queue.isCurrent
    let (capacity, waiting) = (queue.state.settings.capacity, queue.state.ring.count)
    let (queued, statistics) = (queue.queued, queue.state.statistics)
    let (worker, consumer) = (
      queue.state.workerThread.load(ordering: .relaxed),
      queue.state.consumer.load(ordering: .relaxed)
    )
    text.keep(&queue.state.settings.label)
    queue.lock.unlock()
    if !isCurrent { return }
    text.add(
      "\nqueue %x%l: calls that wait: %d of %d", queue.handle.rawValue, waiting, UInt64(capacity))
    text.add(
      "; queued: %d, refused: %d, dropped: %d, at most: %d\n", queued,
      statistics.refused,
      statistics.dropped, statistics.highest)
    add(worker, "  its own thread: %d\n")
    add(consumer, "  last run by thread: %d\n")
  }

  /// Adds a line about a thread, if the thread has a record.
  private mutating func add(_ thread: ThreadIdentity, _ format: Text.Format) {
    guard let record = ThreadRegistry.record(of: thread) else { return }
    text.add(format, record.systemNumber)
  }

  /// Adds a lifetime. Adds nothing if the handle belongs to a different kind of object.
  mutating func addLifetime(_ handle: Handle) {
    guard handle.kind == .lifetime, let lifetime = Lifetime(slotOf: handle) else { return }
    guard take(lifetime.lock) else {
      return text.add(
        "\nlifetime %x: a thread is changing it and does not go on\n", handle.rawValue)
    }
    let (isCurrent, count) = (lifetime.id == handle, lifetime.liveCount)
    lifetime.lock.unlock()
    if isCurrent { text.add("\nlifetime %x: delegates: %d\n", handle.rawValue, UInt64(count)) }
  }

  /// Returns the handle of the queue whose consumer is stored at the given address, or none if
  /// there is no such queue.
  static func queue(of consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>) -> Handle {
    for index in Queue.pool.directory.indices {
      let queue = Queue(slot: Queue.pool.header(index))
      if queue.consumer == consumer { return queue.handle }
    }
    return .none
  }
}
