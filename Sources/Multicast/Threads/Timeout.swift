import MulticastShims

/// How long an operation may wait.
struct Timeout {
  /// The moment on the monotonic clock at which the wait ends. 0 means not to wait at all, `.max`
  /// means no limit, and `.max - 1` means `untilExit`.
  let deadline: UInt64

  static var none: Timeout { Timeout(deadline: 0) }
  static var unlimited: Timeout { Timeout(deadline: .max) }
  /// The timeout of removals. No limit, except that a thread inside exit() does not wait.
  /// Otherwise, if another thread were in a call that never returns, the destructors of static
  /// objects would wait for that call forever.
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
