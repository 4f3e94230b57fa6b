import MulticastHeader
import MulticastShims
import Synchronization

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

  /// A line about a thread, if there is one.
  private mutating func add(_ thread: ThreadIdentity, _ format: Text.Format) {
    guard let record = ThreadRegistry.record(of: thread) else { return }
    text.add(format, record.systemNumber)
  }

  /// A lifetime; or nothing, if that is the handle of something else.
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

  /// The queue that a wait is for, by where the queue keeps its consumer; or none.
  static func queue(of consumer: UnsafeMutablePointer<Atomic<ThreadIdentity>>) -> Handle {
    for index in Queue.pool.directory.indices {
      let queue = Queue(slot: Queue.pool.header(index))
      if queue.consumer == consumer { return queue.handle }
    }
    return .none
  }
}
