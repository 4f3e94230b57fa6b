import MulticastHeader
import MulticastRuntime

/// How a delegate of the type `P` becomes the two fields of a `multicast_delegate`, and back.
///
/// The context is the object. The function is never called: it is the rest of the value of type
/// `P`. If `P` is a protocol for classes, `P` is two words, the object and the witness table, and
/// no memory is needed. If `P` is any other protocol, `P` is more words, of which all but the
/// object are the same for all objects of a class: they are kept in a template, for good.
@usableFromInline
enum Words<P> {
  /// The delegate as an object; nil if it is a value.
  ///
  /// All words but the first may depend only on the class of the object. They do if the first word
  /// is the object: in each of these types it is the only word that owns something.
  static func object(of delegate: P) -> AnyObject? {
    guard MemoryLayout<P>.size >= MemoryLayout<UnsafeRawPointer>.size else { return nil }
    let object = delegate as AnyObject
    let first = withUnsafeBytes(of: delegate) { $0.load(as: UnsafeRawPointer.self) }
    return first == UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque()) ? object : nil
  }

  /// The function of a delegate that is an object.
  static func function(of delegate: P, _ object: AnyObject) -> multicast_function {
    switch MemoryLayout<P>.size {
    case 8:
      return multicast_swift_object
    case 16:
      return withUnsafeBytes(of: delegate) {
        $0.load(fromByteOffset: 8, as: multicast_function.self)
      }
    default:
      let template = Templates.template(of: delegate, object)
      return unsafeBitCast(template, to: multicast_function.self)
    }
  }

  /// Passes the delegate to `body`. It is borrowed: the caller keeps the object.
  @inlinable @inline(__always)
  static func withDelegate(
    _ delegate: UnsafePointer<multicast_delegate>, _ body: (P) -> Bool
  ) -> Bool {
    var words = (delegate.pointee.context, delegate.pointee.function)
    let isValue =
      unsafeBitCast(words.1, to: UInt.self)
      == unsafeBitCast(multicast_swift_value as multicast_function, to: UInt.self)
    if isValue || MemoryLayout<P>.size > 16 { return withOther(delegate, isValue, body) }
    // 8 or 16 bytes, aligned to 8: a value of type P, or such a value and an unused word.
    return withUnsafeMutablePointer(to: &words) {
      lend(UnsafeMutableRawPointer($0).assumingMemoryBound(to: P.self), to: body)
    }
  }

  /// Of a value, or of a type with more than two words.
  @inlinable @inline(never)
  static func withOther(
    _ delegate: UnsafePointer<multicast_delegate>, _ isValue: Bool, _ body: (P) -> Bool
  ) -> Bool {
    let delegate = delegate.pointee
    if isValue {
      return body(Unmanaged<ValueBox<P>>.fromOpaque(delegate.context!).takeUnretainedValue().value)
    }
    return withUnsafeTemporaryAllocation(
      byteCount: MemoryLayout<P>.size, alignment: MemoryLayout<P>.alignment
    ) { words in
      let template = unsafeBitCast(delegate.function, to: UnsafeRawPointer.self)
      words.baseAddress!.copyMemory(from: template, byteCount: MemoryLayout<P>.size)
      words.storeBytes(of: delegate.context, as: UnsafeMutableRawPointer?.self)
      return lend(words.baseAddress!.assumingMemoryBound(to: P.self), to: body)
    }
  }

  /// Passes a value that lies in memory to `body`. It is moved out and back: a copy would take a
  /// reference to the object, and give it back.
  @inlinable @inline(__always)
  static func lend(_ delegate: UnsafeMutablePointer<P>, to body: (P) -> Bool) -> Bool {
    let lent = delegate.move()
    let result = body(lent)
    delegate.initialize(to: consume lent)
    return result
  }
}
