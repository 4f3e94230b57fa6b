/// The calls that run at one moment, read once for questions about many registrations: a hash set
/// of tokens, with open addressing.
struct RunningCalls {
  /// On the stack: 1,024 bytes, the most that the compiler puts there. With more calls the set is
  /// on the heap.
  private static let stackCapacity = 128

  private let tokens: UnsafeMutablePointer<Token>
  /// A power of two, of which half is used at most.
  private let capacity: Int
  private var count = 0
  /// Without memory for all calls, each question reads all frames.
  private var isComplete = true

  /// Reads the frames of all threads. A call that is not found began after the caller's heavy
  /// fence, and so after the caller's changes before the fence.
  static func read<Result>(_ body: (RunningCalls) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: Token.self, capacity: stackCapacity) { tokens in
      var calls = RunningCalls(tokens.baseAddress.unsafelyUnwrapped, stackCapacity)
      var capacity = stackCapacity
      while !calls.isComplete {
        // The calls that began meanwhile may have taken the places of older ones: read all again.
        capacity *= 2
        while capacity < 2 * calls.count { capacity *= 2 }
        if calls.tokens != tokens.baseAddress { calls.deallocate() }
        guard let block = try? Allocator.allocate(size: size(capacity)) else {
          return body(RunningCalls(tokens.baseAddress.unsafelyUnwrapped))
        }
        calls = RunningCalls(block.bindMemory(to: Token.self, capacity: capacity), capacity)
      }
      let result = body(calls)
      if calls.capacity > stackCapacity { calls.deallocate() }
      return result
    }
  }

  private static func size(_ capacity: Int) -> Int { capacity * MemoryLayout<Token>.stride }

  private func deallocate() { Allocator.deallocate(tokens, size: Self.size(capacity)) }

  /// Without a set.
  private init(_ tokens: UnsafeMutablePointer<Token>) {
    self.tokens = tokens
    capacity = 0
    isComplete = false
  }

  private init(_ tokens: UnsafeMutablePointer<Token>, _ capacity: Int) {
    self.tokens = tokens
    self.capacity = capacity
    tokens.initialize(repeating: .none, count: capacity)
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in if !token.isNone { insert(token) } }
    }
  }

  private mutating func insert(_ token: Token) {
    let place = place(of: token)
    if !tokens[place].isNone { return }
    count &+= 1
    if 2 * count <= capacity { tokens[place] = token } else { isComplete = false }
  }

  /// The place of a token, or the empty place for it.
  private func place(of token: Token) -> Int {
    // Hashed, because registrations of different stripes are whole slabs apart.
    let hash = token.rawValue &* 0x9E37_79B9_7F4A_7C15 >> 32
    var place = Int(truncatingIfNeeded: hash) & (capacity &- 1)
    while !tokens[place].isNone && tokens[place] != token { place = (place &+ 1) & (capacity &- 1) }
    return place
  }

  func contain(_ token: Token) -> Bool {
    if !isComplete { return ThreadRegistry.isCalled(token) }
    return !tokens[place(of: token)].isNone  //~ no_wait_for_calls
  }
}
