import CMulticast

/// What one add is given: delegates, how to add them, and where their tokens go.
struct NewDelegates {
  let delegates: UnsafePointer<multicast_delegate>
  let count: UInt32
  let options: Options
  let tokens: UnsafeMutablePointer<multicast_token>?

  /// One for each delegate where the options ask for them; else nil.
  private(set) var extras: UnsafeMutablePointer<Extras>? = nil

  /// How many can be added at once: as many as indices can number.
  static let limit = 1 << Int(Handle.indexBits)

  init(
    _ delegates: UnsafePointer<multicast_delegate>, count: UInt32, _ options: Options,
    _ tokens: UnsafeMutablePointer<multicast_token>?
  ) {
    self.delegates = delegates
    self.count = count
    self.options = options
    self.tokens = tokens
  }

  subscript(index: UInt32) -> multicast_delegate { delegates[Int(index)] }

  /// The bits that each entry begins with.
  var state: UInt32 {
    (options.isOnce ? InvocationList.State.once : 0)
      | (options.isFiltered ? InvocationList.State.filtered : 0)
      | (options.isWeak ? InvocationList.State.weak : 0)
      | (options.destination != nil ? InvocationList.State.queued : 0)
      | (options.priority != 0 ? InvocationList.State.prioritized : 0)
  }

  /// Whether there is nothing wrong with the delegates themselves.
  var areValid: Bool {
    if options.isContradictory { return false }
    var index: UInt32 = 0
    while index < count {
      if self[index].function == nil { return false }
      index &+= 1
    }
    return true
  }

  /// Whether the delegate is replaced at once, by an equal one that is added with it.
  func isReplaced(_ index: UInt32) -> Bool {
    guard options.isUnique else { return false }
    var later = index &+ 1
    while later < count {
      if self[later] == self[index] { return true }
      later &+= 1
    }
    return false
  }

  // MARK: - Extras

  mutating func allocateExtras() throws(Status) {
    guard options.needsExtras else { return }
    var index = count
    while index > 0 {
      index &-= 1
      guard let new = Extras.allocate(options, self[index]) else {
        throw .outOfMemory
      }
      new.pointee.next = extras
      extras = new
    }
  }

  mutating func takeExtras() -> UnsafeMutablePointer<Extras>? {
    let first = extras
    extras = first?.pointee.next
    return first
  }

  /// Lets go of everything, as a failed add does: the tokens are none, and the releases run.
  mutating func abandon() {
    while let extras = takeExtras() { Extras.deallocate(extras) }
    Self.clear(tokens, count)
    guard let release = options.release else { return }
    var index: UInt32 = 0
    while index < count {
      CallerCode.releasing { release(self[index].context) }
      index &+= 1
    }
  }

  /// A failed add gives no tokens.
  static func clear(_ tokens: UnsafeMutablePointer<multicast_token>?, _ count: UInt32) {
    guard let tokens else { return }
    var index = 0
    while index < Int(count) {
      tokens[index] = multicast_token(id: 0)
      index &+= 1
    }
  }
}

/// Two delegates are equal when function and context both are.
func == (a: multicast_delegate, b: multicast_delegate) -> Bool {
  unsafeBitCast(a.function, to: UInt.self) == unsafeBitCast(b.function, to: UInt.self)
    && a.context == b.context
}
