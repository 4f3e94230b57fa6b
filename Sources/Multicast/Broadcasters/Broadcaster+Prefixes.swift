import MulticastHeader
import MulticastShims
import Synchronization

/// Observers of all names that start with a prefix.
///
/// The table stores a prefix as a name that consists of a NUL and the prefix. No caller's name
/// begins with a NUL. So each prefix has a multicast, and the same code handles names and prefixes.
///
/// A notification truncates its name to each length for which a prefix exists, looks up each
/// truncated name, and invokes the multicasts that it finds. Names and prefixes do not refer to
/// each other, so creating a name and creating a prefix cannot race.
extension Broadcaster {
  /// The steps that a notification performs in addition to calling its name's observers. Each step
  /// has one bit in a word. The word is 0 for most broadcasters, so most notifications need only
  /// one comparison.
  ///
  /// The bits for prefixes are never cleared, because the prefixes' multicasts continue to exist.
  /// Relaxed is enough: a thread that knows of an observer or a transport has synchronized with the
  /// thread that registered or attached it. The word is changed only under the names' lock.
  enum Extras {
    static var transport: UInt64 { 1 }

    private static let longest = 62

    /// All prefixes of at least `longest` bytes share one bit.
    static func prefix(ofLength length: Int) -> UInt64 { 2 << UInt64(min(length, longest)) }
  }

  /// The bits of the broadcaster, or of a later broadcaster in its slot if the handle is stale.
  var extras: UInt64 { storage.pointee.extras.load(ordering: .relaxed) }

  var hasPrefixes: Bool { extras > Extras.transport }

  func setExtra(_ extra: UInt64, _ isSet: Bool) {
    storage.pointee.extras.store(isSet ? extras | extra : extras & ~extra, ordering: .relaxed)
  }

  /// Notifies the observers of a name's prefixes, starting with the longest prefix. Returns the
  /// result of the notification. The observers of the name itself have already been called.
  ///
  /// - Parameters:
  ///   - count: The result of notifying the observers of the name itself.
  ///   - owned: See the parameter `owned` of `Multicast.dispatch`.
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

  /// Like the other `deliverToPrefixes`, but for a notification without options.
  @inline(never)
  func deliverToPrefixes(
    _ text: UnsafePointer<CChar>?, _ invocation: Invocation, after count: Int64
  ) -> Int64 {
    var (owned, outcome) = (Payload?.none, multicast_outcome())
    defer { owned?.release() }
    return deliverToPrefixes(
      text, InvocationOptions(invocation), .none, after: count, &owned, &outcome)
  }

  /// - Returns: nil if the prefix does not exist or the broadcaster has been destroyed.
  @inline(never)  // keeps the key off the stack while observers are called
  private func findPrefix(_ bytes: UnsafeRawPointer, _ length: Int) -> Multicast? {
    Name.withKey(ofPrefix: bytes, length) { key in
      do throws(Status) { return Multicast(slotOf: try find(key)) } catch { return nil }
    }
  }
}

extension Name {
  /// The maximum length of a prefix. It is one byte less than the maximum length of a name, because
  /// the key adds a NUL.
  static let longestPrefix = longest - 1

  var isPrefix: Bool { bytes.load(as: UInt8.self) == 0 }

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

  /// - Parameter body: Receives the key of a prefix, or nil if the prefix is too long.
  static func withKey<Result>(
    ofPrefix text: UnsafePointer<CChar>?, _ body: (Name?) -> Result
  ) -> Result {
    let length = text.map { shims_length($0, longest) } ?? longest
    guard let text, length <= longestPrefix else { return body(nil) }
    return withKey(ofPrefix: UnsafeRawPointer(text), length) { body($0) }
  }
}

extension Receipt {
  /// After an invocation has waited for its queued calls, drops their receipts, so that the
  /// invocation can continue with the next multicast.
  ///
  /// - Parameter payload: On return, this is the payload itself, which the caller retains.
  static func leave(_ payload: inout Payload?) {
    guard let newest = payload, newest.isReceipt else { return }
    var last = newest
    while last.isReceipt { last = Receipt(last).previous }
    last.retain()
    newest.release()
    payload = last
  }
}
