/// The result of an operation. The numbers are the same as in `multicast_status`.
enum Status: Int32, Error {
  case ok = 0
  case pending = 1
  case invalidHandle = -10
  case invalidArgument = -20
  case notFound = -30
  case outOfMemory = -40
  case limit = -50
  case timeout = -70
  case state = -80
  case system = -90

  /// Combines the results of two waits. `system` takes precedence, because it means that the
  /// library does not know which calls are running. Otherwise the result is `later`, or this status
  /// if `later` is `ok`.
  func combined(with later: Status) -> Status {
    self == .system || later == .ok ? self : later
  }

  /// The number with which a function that returns a count reports this status.
  var count: Int64 { Int64(rawValue) }
}
