import MulticastHeader
import Synchronization

/// The arguments of an add: delegates, how to add them, and where their tokens go.
struct NewDelegates {
  let delegates: UnsafePointer<multicast_delegate>
  let count: UInt32
  let options: Options
  var tokens: UnsafeMutablePointer<multicast_token>?

  /// Begins with the add, if there is one. It needs the tokens.
  var replay: Replay.Run? = nil

  /// One for each delegate if the options need them; otherwise nil.
  private(set) var details: RegistrationDetails.Address? = nil

  /// Whether so many can be added at once: no more than there are indices. Asked before any other
  /// argument is used.
  ///
  /// - Parameter count: A `size_t`: below zero is more than there can be.
  static func allows(_ count: Int) -> Bool { count >= 0 && count <= 1 << Int(Handle.indexBits) }

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

  /// The flags of each registration.
  var flags: UInt32 {
    let isSpecial =
      options.isOnce || options.sharesLock || options.isFiltered || options.isReplayed
      || options.isWeak || options.destination != nil
    return (options.isOnce ? Registration.Flags.once : 0)
      | (options.sharesLock ? Registration.Flags.shared : 0)  //~ flags_without_shared_lock
      | (isSpecial ? Registration.Flags.special : 0)  //~ flags_without_special
  }

  /// Whether the delegates themselves, and the options, are valid.
  var areValid: Bool {
    if options.isContradictory { return false }
    for index in 0..<count {
      if self[index].function == nil { return false }
    }
    return true
  }

  /// Whether an equal delegate of the same add replaces this delegate at once.
  func isReplaced(_ index: UInt32) -> Bool {
    guard options.isUnique else { return false }
    for later in index &+ 1..<count {
      if self[later] == self[index] { return true }
    }
    return false
  }

  // MARK: - Details

  @inline(never) mutating func allocateDetails() throws(Status) {
    guard options.needsDetails else { return }
    var index = count
    while index > 0 {
      index &-= 1
      let new = try RegistrationDetails.allocate(options, self[index])
      new.pointee.replayed.store(UInt(bitPattern: details), ordering: .relaxed)
      details = new
    }
  }

  mutating func takeDetails() -> RegistrationDetails.Address? {
    guard let first = details else { return nil }
    details = UnsafeMutablePointer(bitPattern: first.pointee.replayed.load(ordering: .relaxed))
    return first
  }

  // MARK: - Failure

  /// Ends a failed add: there are no tokens, and the release functions run.
  @inline(never) mutating func abandon() {
    while let details = takeDetails() { RegistrationDetails.deallocate(details) }
    Self.clear(tokens, count)
    guard let release = options.given.release else { return }
    for index in 0..<count {
      CallerCode.releasing { release(self[index].context) }
    }
  }

  /// The same, for one delegate.
  static func abandon(
    _ delegate: multicast_delegate, _ release: RegistrationDetails.Release?,
    _ token: UnsafeMutablePointer<multicast_token>?
  ) {
    clear(token, 1)
    if let release { CallerCode.releasing { release(delegate.context) } }
  }

  /// One store: another thread may read the token meanwhile. Relaxed: one that is in a call of the
  /// delegate has acquired it with the list.
  @inline(__always)
  static func store(_ token: Token, to out: UnsafeMutablePointer<multicast_token>) {
    UnsafeMutableRawPointer(out).assumingMemoryBound(to: Atomic<UInt64>.self).pointee.store(
      token.rawValue, ordering: .relaxed)
  }

  static func clear(_ tokens: UnsafeMutablePointer<multicast_token>?, _ count: UInt32) {
    guard let tokens else { return }
    for index in 0..<Int(count) {
      store(.none, to: tokens + index)
    }
  }
}
