import CMulticast

/// Observes calls, slow calls, and removals that wait for a long time. Calls that are not watched
/// cost nothing extra.
///
/// ```swift
/// listeners.setWatch(Watch(slowness: .milliseconds(5), slow: { print($0.label ?? "?", $0.time) }))
/// ```
///
/// A watch's functions run on the thread that calls or waits, and may use the entire module.
public final class Watch: Sendable {
  /// Describes one call or one wait.
  public struct Report: Hashable, Sendable {
    /// The registration whose call has returned, or for whose call the thread is waiting.
    public let registration: Registration
    /// The registration's label; always nil in reports to `called`.
    public let label: String?
    /// The duration of the call, or of the wait so far.
    public let time: Duration
  }

  private let slowness: Duration?
  private let called: (@Sendable (Report) -> Void)?
  private let slow: (@Sendable (Report) -> Void)?
  private let stuck: (@Sendable (Report) -> Void)?

  /// Creates a watch.
  ///
  /// - Parameters:
  ///   - slowness: A call that takes this long is slow, and a removal that waits this long is
  ///     stuck. If it is nil, neither is reported.
  ///   - called: Called when a call has returned.
  ///   - slow: Called when a slow call has returned.
  ///   - stuck: Called when a removal has waited for `slowness` and continues to wait.
  /// - Complexity: O(1).
  public init(
    slowness: Duration? = nil, called: (@Sendable (Report) -> Void)? = nil,
    slow: (@Sendable (Report) -> Void)? = nil, stuck: (@Sendable (Report) -> Void)? = nil
  ) {
    self.slowness = slowness
    self.called = called
    self.slow = slow
    self.stuck = stuck
  }

  /// Sets a watch for all multicasts and signals of the process, except those that have their own
  /// watch. Passing nil removes the watch.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending`` if a function of the previous watch is
  ///   still running.
  /// - Complexity: O(multicasts).
  @discardableResult
  public static func setForAll(_ watch: Watch?) -> Removal {
    ofAll.replace(with: watch, of: Multicast(id: 0))
  }

  private static let ofAll = WatchSlot()

  /// The options for the C interface, which do not retain the watch.
  var options: Multicast.Watch {
    var options = Multicast.Watch.default
    options.context = Unmanaged.passUnretained(self).toOpaque()
    options.slowNanoseconds = slowness?.nanoseconds ?? 0
    if called != nil {
      options.called = { context, token, _, time in
        Watch.of(context).called?(Report(token, nil, time))
      }
    }
    if slow != nil {
      options.slow = { Watch.of($0).slow?(Report($1, $2, $3)) }
    }
    if stuck != nil {
      options.stuck = { Watch.of($0).stuck?(Report($1, $2, $3)) }
    }
    return options
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> Watch {
    Unmanaged<Watch>.fromOpaque(context!).takeUnretainedValue()
  }
}

extension Watch.Report {
  fileprivate init(_ token: Multicast.Token, _ label: UnsafePointer<CChar>?, _ time: UInt64) {
    registration = Registration(token)
    self.label = label.map { String(cString: $0) }
    self.time = .nanoseconds(Int64(clamping: time))
  }
}

/// Retains the watch of one multicast, or of all multicasts, while the core uses it.
final class WatchSlot: Sendable {
  private struct Content: Sendable {
    /// The current watch, and previous ones whose functions may still be running.
    var watches: [Watch] = []
    /// The number of calls to `replace` that have begun, and the number that are running.
    var changes = 0
    var running = 0
  }

  private let content = Locked(Content())

  @discardableResult
  func replace(with watch: Watch?, of target: Multicast) -> Removal {
    let (number, older, isAlone) = content.withLock { content in
      let older = content.watches.count
      if let watch { content.watches.append(watch) }
      content.changes += 1
      content.running += 1
      return (content.changes, older, content.running == 1)
    }
    // Setting a watch may wait for functions of the previous one, so do not hold the lock.
    let status: Multicast.Status
    if var options = watch?.options {
      status = target.setWatch(&options)
    } else {
      status = target.setWatch(nil)
    }
    let result = Removal(status)
    // If another change has overlapped with this one, it is unknown which watch is now set, so all
    // watches are retained until the next change.
    let ended = content.withLock { content -> [Watch] in
      content.running -= 1
      guard result == .ended, isAlone, content.changes == number else { return [] }
      defer { content.watches.removeFirst(older) }
      return Array(content.watches.prefix(older))
    }
    withExtendedLifetime(ended) {}
    return result
  }

  deinit {
    // The watches are leaked, because a function of one of them may still be running, and may have
    // released the last reference to the multicast.
    for watch in content.withLock({ $0.watches }) { _ = Unmanaged.passRetained(watch) }
  }
}
