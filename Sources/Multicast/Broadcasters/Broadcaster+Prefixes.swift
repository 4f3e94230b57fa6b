import MulticastHeader
import MulticastShims
import Synchronization

/// Observers of all names that begin with a prefix.
///
/// For the table a prefix is a name: a NUL, with which no name of a caller begins, and the prefix.
/// So a prefix has a multicast, and what holds for names holds for prefixes: how observers are
/// added and removed, how transports are notified of them, and how the broadcaster is destroyed.
///
/// A notification looks up the beginnings of its name that have the length of a prefix, and invokes
/// their multicasts. Names know nothing of prefixes, nor prefixes of names. So nothing is to be
/// done when either is made, and there is no race between the two.
extension Broadcaster {
  /// What a notification does besides calling the observers of its name, in one word, which is 0
  /// for most broadcasters: so it costs most notifications one comparison.
  ///
  /// The bits of prefixes stay, as their multicasts do. Relaxed: a thread that knows that an
  /// observer was registered, or a transport attached, has synchronized with the thread that did
  /// that. The names' lock is held for changes.
  enum Extras {
    static var transport: UInt64 { 1 }

    private static let longest = 62

    /// Longer prefixes share one bit.
    static func prefix(ofLength length: Int) -> UInt64 { 2 << UInt64(min(length, longest)) }
  }

  /// Those of the broadcaster, or of the next occupant of its slot.
  var extras: UInt64 { storage.pointee.extras.load(ordering: .relaxed) }

  var hasPrefixes: Bool { extras > Extras.transport }

  func setExtra(_ extra: UInt64, _ isSet: Bool) {
    storage.pointee.extras.store(isSet ? extras | extra : extras & ~extra, ordering: .relaxed)
  }

  /// Notifies the observers of the prefixes of a name, of the longest prefix first, after those of
  /// the name itself.
  ///
  /// - Parameters:
  ///   - count: The result so far.
  ///   - owned: As in `Multicast.dispatch`.
  /// - Returns: the result of the notification.
  func deliverToPrefixes(
    _ text: UnsafePointer<CChar>?, _ options: InvocationOptions, _ deadline: Timeout,
    after count: Int64, _ owned: inout Payload?, _ outcome: inout multicast_outcome
  ) -> Int64 {
    guard count >= 0 || count == Status.timeout.count, let name = Name(text) else { return count }
    var result = count
    let lengths = extras
    var length = min(name.length, Name.longestPrefix) &+ 1
    while length > 0 {
      length &-= 1
      guard lengths & Extras.prefix(ofLength: length) != 0,
        let multicast = findPrefix(name.bytes, length)
      else { continue }
      Receipt.leave(&owned)
      let called = multicast.dispatch(options, &owned, &outcome, name: text, until: deadline)
      if called == Status.invalidHandle.count { continue }  // see `notify`
      if called < 0 && called != Status.timeout.count { return called }
      result = result < 0 || called < 0 ? Status.timeout.count : result &+ called
    }
    return result
  }

  /// The same without options.
  @inline(never)
  func deliverToPrefixes(
    _ text: UnsafePointer<CChar>?, _ invocation: Invocation, after count: Int64
  ) -> Int64 {
    var (owned, outcome) = (Payload?.none, multicast_outcome())
    defer { owned?.release() }
    return deliverToPrefixes(
      text, InvocationOptions(invocation), .none, after: count, &owned, &outcome)
  }

  /// - Returns: nil if there is no such prefix, or if the broadcaster was destroyed.
  @inline(never)  // the key is not on the stack while observers are called
  private func findPrefix(_ bytes: UnsafeRawPointer, _ length: Int) -> Multicast? {
    Name.withKey(ofPrefix: bytes, length) { key in
      do throws(Status) { return Multicast(slotOf: try find(key)) } catch { return nil }
    }
  }
}

extension Name {
  /// One byte less than a name: the NUL of the key counts.
  static let longestPrefix = longest - 1

  /// Whether this is the key of a prefix.
  var isPrefix: Bool { bytes.load(as: UInt8.self) == 0 }

  /// - Parameter body: Gets the key of a prefix.
  static func withKey<Result>(
    ofPrefix bytes: UnsafeRawPointer, _ length: Int, _ body: (Name) -> Result
  ) -> Result {
    withUnsafeTemporaryAllocation(byteCount: longest, alignment: 8) { buffer in
      let key = buffer.baseAddress.unsafelyUnwrapped
      key.storeBytes(of: 0, as: UInt8.self)
      shims_copy(key + 1, bytes, length)
      return body(Name(bytes: key, length: length &+ 1))
    }
  }

  /// - Parameter body: Gets the key of a prefix; nil if it is too long.
  static func withKey<Result>(
    ofPrefix text: UnsafePointer<CChar>?, _ body: (Name?) -> Result
  ) -> Result {
    let length = text.map { shims_length($0, longest) } ?? longest
    guard let text, length <= longestPrefix else { return body(nil) }
    return withKey(ofPrefix: UnsafeRawPointer(text), length) { body($0) }
  }
}

extension Receipt {
  /// Leaves the receipts of calls that an invocation has queued and waited for, for its next
  /// multicast.
  ///
  /// - Parameter payload: Afterwards the payload itself, which the caller retains.
  static func leave(_ payload: inout Payload?) {
    guard let newest = payload, newest.isReceipt else { return }
    var last = newest
    while last.isReceipt { last = Receipt(last).previous }
    last.retain()
    newest.release()
    payload = last
  }
}
