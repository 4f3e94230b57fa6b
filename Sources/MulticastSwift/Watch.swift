import CMulticast

/// Functions that are called after calls, and for removals that wait for long. Free while there is
/// none.
///
/// ```swift
/// listeners.setWatch(Watch(slowness: .milliseconds(5), slow: { print($0.label ?? "?", $0.time) }))
/// ```
///
/// They run on the thread that calls or waits, and may use everything here.
public final class Watch: Sendable {
  /// One call, or one wait.
  public struct Report: Hashable, Sendable {
    /// The registration that was called, or whose call is waited for.
    public let registration: Registration
    /// Its label; nil in `called`.
    public let label: String?
    /// How long it took, or has taken up to now.
    public let time: Duration
  }

  private let slowness: Duration?
  private let called: (@Sendable (Report) -> Void)?
  private let slow: (@Sendable (Report) -> Void)?
  private let stuck: (@Sendable (Report) -> Void)?

  /// - Parameters:
  ///   - slowness: From which time a call is slow, and a wait is stuck; nil: never.
  ///   - called: A call has returned.
  ///   - slow: A slow call has returned.
  ///   - stuck: A removal has waited for so long, and waits on.
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

  /// Watches all multicasts and signals of the process that have no watch of their own; nil: none
  /// from now on.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending``: a function of the last watch still runs.
  /// - Complexity: O(multicasts).
  @discardableResult
  public static func setForAll(_ watch: Watch?) -> Removal {
    ofAll.replace(with: watch, of: Multicast(id: 0))
  }

  private static let ofAll = WatchSlot()

  /// For the C interface; the context is not retained.
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

/// The watch of one multicast, or of all: the C interface has pointers to watches that are in use.
final class WatchSlot: Sendable {
  private struct Content: Sendable {
    /// The newest, and others whose functions may still run.
    var watches: [Watch] = []
    /// How many changes have begun, and how many of them go on.
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
    // Waits for functions of the last watch: not under the lock.
    let status: Multicast.Status
    if var options = watch?.options {
      status = target.setWatch(&options)
    } else {
      status = target.setWatch(nil)
    }
    let result = Removal(status)
    // If another change went on at the beginning, or has begun since, it is unknown which watch is
    // set now: they stay until the next change.
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
    // A function of one of them may still run, inside which the multicast was given up.
    for watch in content.withLock({ $0.watches }) { _ = Unmanaged.passRetained(watch) }
  }
}
