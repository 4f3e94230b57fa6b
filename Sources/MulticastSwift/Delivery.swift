import CMulticast
import MulticastRuntime

/// A bounded queue of calls, executed by one of the program's loops or by the delivery's own
/// thread.
///
/// Use it to call closures on threads and in loops that are not dispatch queues. ``Overflow``
/// determines what happens to a new call if the delivery is full.
///
/// ```swift
/// let calls = Delivery()!
/// temperature.add(on: .delivery(calls)) { print($0) }
/// while isRunning { if calls.wait(for: .seconds(1)) { calls.run() } }
/// ```
///
/// A loop that sleeps in `poll` can poll ``descriptor``. If a loop has to be woken by a function
/// call, pass `wake`.
public final class Delivery: Sendable {
  /// What happens to a new call if the delivery is full.
  public enum Overflow: Hashable, Sendable {
    /// The new call is refused.
    case refuse
    /// The oldest pending call is dropped.
    case dropOldest
    /// The notifying thread waits for room. If waiting would cause a deadlock, the call is refused.
    case block
  }

  /// Counts of calls since the delivery was created.
  public struct Statistics: Hashable, Sendable {
    /// Calls that are pending now.
    public let pending: Int
    /// Calls that have been executed, including one that is still running.
    public let delivered: Int
    /// Calls that have been refused or dropped.
    public let lost: Int
  }

  private let queue: Multicast.Queue
  /// A multicast with a single delegate. The queue calls this delegate, which runs the
  /// `DeferredCall` in the call's payload.
  private let works: Multicast
  private let waker: Waker?

  /// - Parameters:
  ///   - capacity: The largest number of pending calls, from 1 to 2²⁴.
  ///   - overflow: What happens to a new call if `capacity` calls are pending.
  ///   - wake: Called on the notifying thread when a call becomes pending. It is not called again
  ///     until ``run(max:)`` has been called. The function should make the loop's thread call
  ///     ``run(max:)``.
  /// - Returns: nil if the capacity is invalid or there is not enough memory.
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

  // Notifications, runs and waits retain `self`. Therefore only two threads can still be inside
  // `wake`: the delivery's own thread, and this thread if `wake` has released the last reference.
  // The end of such a call cannot be detected, so the waker is leaked.
  deinit {
    works.destroy(withinNanoseconds: 0)
    let status = queue.destroy(withinNanoseconds: 0)
    if status != .ok, status != .invalidHandle {
      if let waker { _ = Unmanaged.passRetained(waker) }
    }
  }

  // MARK: - Executing calls

  /// Executes pending calls on this thread, oldest first.
  ///
  /// - Parameter max: The largest number of calls to execute. 0 means the number of calls that are
  ///   pending when the function begins.
  /// - Returns: The number of calls that were executed. It is 0 if another thread is executing
  ///   calls.
  /// - Complexity: O(calls).
  @discardableResult
  public func run(max: Int = 0) -> Int {
    withExtendedLifetime(self) { Swift.max(0, Int(queue.run(max: Swift.max(0, max)))) }
  }

  /// Waits until a call is pending.
  ///
  /// - Parameter limit: The timeout; nil means no limit.
  /// - Returns: False if the wait timed out.
  /// - Complexity: O(1).
  public func wait(for limit: Duration? = nil) -> Bool {
    withExtendedLifetime(self) { queue.wait(withinNanoseconds: limit?.nanoseconds ?? .max) > 0 }
  }

  /// Starts a thread that executes calls as soon as they become pending.
  ///
  /// - Returns: False if the delivery already has a thread or the system cannot create one.
  /// - Complexity: O(1).
  @discardableResult
  public func start() -> Bool {
    withExtendedLifetime(self) { queue.start() == .ok }
  }

  /// Stops the delivery's thread and waits for the call that it is executing. The remaining calls
  /// stay pending.
  ///
  /// - Complexity: O(1).
  public func stop() { withExtendedLifetime(self) { _ = queue.stop() } }

  /// Drops all pending calls.
  ///
  /// - Complexity: O(pending calls).
  public func clear() { withExtendedLifetime(self) { _ = queue.clear() } }

  /// A file descriptor for `poll` and similar functions, which is readable while calls are pending.
  /// The value is -1 if the process has no descriptors left. Do not read from the descriptor or
  /// close it, and do not use it after the delivery has been deallocated.
  ///
  /// - Complexity: O(1).
  public var descriptor: Int32 { withExtendedLifetime(self) { queue.descriptor } }

  /// A consistent snapshot of the statistics.
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

  /// Queues a call. Returns false if the delivery is full.
  func perform(_ work: DeferredCall) -> Bool {
    var how = Multicast.Invocation.default
    how.payload = UnsafeRawPointer(Unmanaged.passRetained(work).toOpaque())
    how.release = { work, _ in Unmanaged<DeferredCall>.fromOpaque(work!).release() }
    return withExtendedLifetime(self) { works.invoke(with: &how, outcome: nil) == 1 }
  }
}

/// The context of the queue's `wake` function.
///
/// `@unchecked` is safe because `delivery` is set before another thread can see the waker.
final class Waker: @unchecked Sendable {
  private let body: @Sendable (Delivery) -> Void
  weak var delivery: Delivery?

  init(_ body: @escaping @Sendable (Delivery) -> Void) { self.body = body }

  func wake() { if let delivery { body(delivery) } }
}

/// A pending call of a delivery.
///
/// `@unchecked` is safe because only one thread runs the call, before the last reference is
/// released.
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

  // If the call has not run, it has been refused, dropped in favor of a newer call, or cleared.
  deinit { if !isDone, let losses, registration.isValid { losses.increment() } }

  func run() {
    isDone = true
    body()
  }
}
