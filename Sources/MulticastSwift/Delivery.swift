import CMulticast
import MulticastRuntime

/// Calls that wait until the program's own loop, or a thread of the delivery, executes them.
///
/// For threads and loops that are not dispatch queues. A delivery has room for a certain number of
/// calls. You choose the treatment of further calls, which are counted.
///
/// ```swift
/// let calls = Delivery()!
/// temperature.add(on: .delivery(calls)) { print($0) }
/// while isRunning { if calls.wait(for: .seconds(1)) { calls.run() } }
/// ```
///
/// A loop that sleeps in `poll` can watch ``descriptor``. A loop that is woken by a function gets
/// `wake`.
public final class Delivery: Sendable {
  /// The treatment of a call if there is no room.
  public enum Overflow: Hashable, Sendable {
    /// The call is refused.
    case refuse
    /// The call that has waited longest is dropped.
    case dropOldest
    /// The notification waits for room, unless that would be a deadlock.
    case block
  }

  /// The statistics of a delivery since its creation, in calls.
  public struct Statistics: Hashable, Sendable {
    /// Calls that wait now.
    public let pending: Int
    /// Calls that were executed, including the call that is running.
    public let delivered: Int
    /// Calls that were refused or dropped.
    public let lost: Int
  }

  private let queue: Multicast.Queue
  /// The multicast of one delegate, which delivers to the queue and does the work in its payload.
  private let works: Multicast
  private let waker: Waker?

  /// - Parameters:
  ///   - capacity: How many calls may wait, 1 to 2²⁴.
  ///   - overflow: The treatment of further calls.
  ///   - wake: Called when calls wait, on the thread that notifies, and then not again before
  ///     ``run(max:)``. It makes a loop call that function on its own thread.
  /// - Returns: nil if there is no memory, or the capacity is not valid.
  /// - Complexity: O(capacity).
  public init?(
    capacity: Int = 1024, overflow: Overflow = .refuse,
    wake: (@Sendable (Delivery) -> Void)? = nil
  ) {
    guard capacity > 0 else { return nil }
    var options = Multicast.Queue.Options.default
    options.capacity = capacity
    switch overflow {
    case .refuse: options.overflow = Multicast.Queue.Overflow.refuse.rawValue
    case .dropOldest: options.overflow = Multicast.Queue.Overflow.dropOldest.rawValue
    case .block: options.overflow = Multicast.Queue.Overflow.block.rawValue
    }
    waker = wake.map(Waker.init)
    if let waker {
      options.wake = { Unmanaged<Waker>.fromOpaque($0!).takeUnretainedValue().wake() }
      options.wakeContext = Unmanaged.passUnretained(waker).toOpaque()
    }
    queue = Multicast.Queue.create(&options)
    works = Multicast.create()
    guard queue.id != 0, works.id != 0 else { return nil }
    var how = Multicast.AddOptions.default
    how.queue = queue
    let work = Multicast.Delegate(
      function: { _, _, payload, _ in
        Unmanaged<DeferredCall>.fromOpaque(payload!).takeUnretainedValue().run()
      }, context: nil)
    guard works.add(work, options: &how, token: nil) == .ok else { return nil }
    waker?.delivery = self
  }

  // Notifications, runs and waits keep `self`. So `wake` may run only on the queue's own thread, or
  // on this thread, which then has given up the last reference inside `wake`. In these two cases
  // the waker stays for good: the end of that call cannot be detected.
  deinit {
    works.destroy(withinNanoseconds: 0)
    let status = queue.destroy(withinNanoseconds: 0)
    if status != .ok, status != .invalidHandle {
      if let waker { _ = Unmanaged.passRetained(waker) }
    }
  }

  // MARK: - Making the calls

  /// Executes calls on this thread, the oldest first.
  ///
  /// - Parameter max: The most calls to execute; 0: at most as many as wait when this begins.
  /// - Returns: How many were executed. 0 also if another thread executes them.
  /// - Complexity: O(calls).
  @discardableResult
  public func run(max: Int = 0) -> Int {
    withExtendedLifetime(self) { Swift.max(0, Int(queue.run(max: Swift.max(0, max)))) }
  }

  /// Waits until a call waits.
  ///
  /// - Parameter limit: How long; nil: without a limit.
  /// - Returns: False if the time is up.
  /// - Complexity: O(1).
  public func wait(for limit: Duration? = nil) -> Bool {
    withExtendedLifetime(self) { queue.wait(withinNanoseconds: limit?.nanoseconds ?? .max) > 0 }
  }

  /// Starts a thread of the delivery, which executes the calls as they come.
  ///
  /// - Returns: False if the delivery has a thread, or the system has none left.
  /// - Complexity: O(1).
  @discardableResult
  public func start() -> Bool {
    withExtendedLifetime(self) { queue.start() == .ok }
  }

  /// Ends the delivery's thread, and waits for the call that the thread is in. Waiting calls stay.
  ///
  /// - Complexity: O(1).
  public func stop() { withExtendedLifetime(self) { _ = queue.stop() } }

  /// Drops the waiting calls.
  ///
  /// - Complexity: O(calls that wait).
  public func clear() { withExtendedLifetime(self) { _ = queue.clear() } }

  /// A descriptor that is readable exactly while calls wait, for `poll` and its like; -1 if the
  /// system has none left. Only watch it, and not longer than the delivery exists.
  ///
  /// - Complexity: O(1).
  public var descriptor: Int32 { withExtendedLifetime(self) { queue.descriptor } }

  /// The statistics at one moment.
  ///
  /// - Complexity: O(1).
  public var statistics: Statistics {
    withExtendedLifetime(self) {
      var statistics = Multicast.Queue.Statistics.default
      queue.getStatistics(&statistics)
      return Statistics(
        pending: Int(statistics.pending), delivered: Int(statistics.delivered),
        lost: Int(statistics.refused + statistics.dropped))
    }
  }

  /// Queues work for the next run. False: there was no room.
  func perform(_ work: DeferredCall) -> Bool {
    var how = Multicast.Invocation.default
    how.payload = UnsafeRawPointer(Unmanaged.passRetained(work).toOpaque())
    how.release = { work, _ in Unmanaged<DeferredCall>.fromOpaque(work!).release() }
    return withExtendedLifetime(self) { works.invoke(with: &how, outcome: nil) == 1 }
  }
}

/// The context of a delivery's `wake`.
///
/// `@unchecked`: `delivery` is set before another thread can see it.
final class Waker: @unchecked Sendable {
  private let body: @Sendable (Delivery) -> Void
  weak var delivery: Delivery?

  init(_ body: @escaping @Sendable (Delivery) -> Void) { self.body = body }

  func wake() { if let delivery { body(delivery) } }
}

/// The work of a delivery, done later.
///
/// `@unchecked`: one thread runs it, and the thread that gives up the last reference comes after.
final class DeferredCall: @unchecked Sendable {
  private let body: @Sendable () -> Void
  private let registration: Registration
  private let losses: LossCounter?
  private var isDone = false

  init(
    _ body: @escaping @Sendable () -> Void, for registration: Registration, _ losses: LossCounter?
  ) {
    self.body = body
    self.registration = registration
    self.losses = losses
  }

  // Refused, dropped for newer work, or cleared.
  deinit { if !isDone, let losses, registration.isValid { losses.increment() } }

  func run() {
    isDone = true
    body()
  }
}
