import MulticastShims

/// How long an operation may wait.
struct Timeout {
  /// Until this moment on the monotonic clock; 0: it never waits; `.max`: without a limit; one
  /// less: `untilExit`.
  let deadline: UInt64

  static var none: Timeout { Timeout(deadline: 0) }
  static var unlimited: Timeout { Timeout(deadline: .max) }
  /// That of removals: without a limit, but over for a thread inside exit(). A thread that is in a
  /// call need not return from it before the process ends, so the destructors of static objects
  /// would wait for ever.
  static var untilExit: Timeout { Timeout(deadline: .max &- 1) }

  static func nanoseconds(_ timeout: UInt64) -> Timeout {
    let (deadline, isBeyond) = shims_now_ns().addingReportingOverflow(timeout)
    return Timeout(deadline: isBeyond ? .max : deadline)
  }

  var isNone: Bool { deadline == 0 }
  var isOver: Bool {
    if deadline < Self.untilExit.deadline { return shims_now_ns() >= deadline }
    return deadline == Self.untilExit.deadline && shims_is_inside_exit()
  }
}
