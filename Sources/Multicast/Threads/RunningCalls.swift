/// The calls that run at one moment, read once for questions about many registrations.
struct RunningCalls {
  private static let limit = 64

  private let tokens: UnsafeMutableBufferPointer<Token>
  /// How many calls there were. Above the limit, each question reads all frames.
  private var count = 0

  /// Reads the frames of all threads. A call that is not found began after the caller's heavy
  /// fence, and so after everything that the caller changed before that fence.
  static func read<Result>(_ body: (RunningCalls) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: Token.self, capacity: limit) { tokens in
      var calls = RunningCalls(tokens: tokens)
      calls.read()
      return body(calls)
    }
  }

  private mutating func read() {
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in
        if token.isNone { return }
        if count < Self.limit { tokens[count] = token }
        count &+= 1
      }
    }
  }

  func contain(_ token: Token) -> Bool {
    if count > Self.limit { return ThreadRegistry.isCalled(token) }
    var index = 0
    while index < count {
      if tokens[index] == token { return true }  //~ no_wait_for_calls
      index &+= 1
    }
    return false
  }
}
