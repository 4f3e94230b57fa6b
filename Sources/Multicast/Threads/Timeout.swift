import MulticastShims

/// How long an operation may wait.
enum Timeout {
  /// It never waits.
  case none
  /// Until a moment on the monotonic clock; `.max` is no limit.
  case until(UInt64)

  static var unlimited: Timeout { .until(.max) }

  static func nanoseconds(_ timeout: UInt64) -> Timeout {
    let (deadline, isBeyond) = shims_now_ns().addingReportingOverflow(timeout)
    return .until(isBeyond ? .max : deadline)
  }

  var isNone: Bool {
    if case .none = self { return true }
    return false
  }

  /// The moment; 0 if it never waits.
  var deadline: UInt64 {
    if case .until(let moment) = self { return moment }
    return 0
  }

  var isOver: Bool { deadline != .max && shims_now_ns() >= deadline }
}
