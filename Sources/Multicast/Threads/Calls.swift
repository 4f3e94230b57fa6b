/// The calls that run at one moment: read once, for a question about many delegates.
struct Calls {
  private static let limit = 64

  private let tokens: UnsafeMutableBufferPointer<UInt64>
  /// How many calls there were; where that is above the limit, each question reads all frames.
  private var count = 0

  /// Reads every thread's frames. Of what was changed before the caller's heavy fence, a call that
  /// is not found here has begun after it.
  static func withTokens<Result>(_ body: (Calls) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: limit) { tokens in
      var calls = Calls(tokens: tokens)
      calls.read()
      return body(calls)
    }
  }

  private mutating func read() {
    for record in ThreadRegistry.all {
      var depth: UInt32 = 0
      while let call = record.call(at: depth) {
        depth &+= 1
        if call.token == 0 { continue }
        if count < Self.limit { tokens[count] = call.token }
        count &+= 1
      }
    }
  }

  func contain(_ token: UInt64) -> Bool {
    if count > Self.limit { return ThreadRegistry.all.contains { $0.isCalling(token) } }
    var index = 0
    while index < count {
      if tokens[index] == token { return true }
      index &+= 1
    }
    return false
  }
}
