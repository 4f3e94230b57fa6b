import CMulticast
import MulticastRuntime

/// How a delegate of the type `P` becomes the two fields of a `Multicast.Delegate`, and back.
///
/// The context is the object. The function is never called: it is the rest of the value of type
/// `P`. If `P` is a protocol for classes, `P` is two words, the object and the witness table, and
/// no memory is needed. If `P` is any other protocol, `P` is more words, of which all but the
/// object are the same for all objects of a class: they are kept in a template, for good.
@usableFromInline
enum DelegateRepresentation<P> {
  /// The delegate as an object; nil if it is a value.
  ///
  /// All words but the first may depend only on the class of the object. They do if the first word
  /// is the object: in each of these types it is the only word that owns something.
  static func object(of delegate: P) -> AnyObject? {
    // Most delegates: without the search for the right cast.
    let type = unsafeBitCast(P.self as Any.Type, to: UnsafeRawPointer.self)
    if multicast_swift_is_class_bound(type) {
      return withUnsafeBytes(of: delegate) { $0.load(as: AnyObject.self) }
    }
    guard MemoryLayout<P>.size >= MemoryLayout<UnsafeRawPointer>.size else { return nil }
    let object = delegate as AnyObject
    let first = withUnsafeBytes(of: delegate) { $0.load(as: UnsafeRawPointer.self) }
    return first == UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque()) ? object : nil
  }

  /// The function of a delegate that is an object.
  static func function(of delegate: P, _ object: AnyObject) -> Multicast.Function {
    switch MemoryLayout<P>.size {
    case 8:
      return multicast_swift_object
    case 16:
      return withUnsafeBytes(of: delegate) {
        $0.load(fromByteOffset: 8, as: Multicast.Function.self)
      }
    default:
      let template = ExistentialTemplates.template(of: delegate, object)
      return unsafeBitCast(template, to: Multicast.Function.self)
    }
  }

  /// Passes the delegate to `body`. It is borrowed: the caller keeps the object.
  @inlinable @inline(__always)
  static func withDelegate(
    _ context: UnsafeMutableRawPointer?, _ function: Multicast.Function?, _ body: (P) -> Bool
  ) -> Bool {
    let isValue =
      unsafeBitCast(function, to: UInt.self)
      == unsafeBitCast(multicast_swift_value as Multicast.Function, to: UInt.self)
    if isValue || MemoryLayout<P>.size > 16 {
      return withBoxOrTemplate(context, function, isValue, body)
    }
    // 8 or 16 bytes, aligned to 8: a value of type P, or such a value and an unused word. Written
    // at once: a processor waits that reads at once what was written in two parts.
    var words = SIMD2(UInt(bitPattern: context), unsafeBitCast(function, to: UInt.self))
    return withUnsafeMutablePointer(to: &words) {
      lend(UnsafeMutableRawPointer($0).assumingMemoryBound(to: P.self), to: body)
    }
  }

  /// Of a value, or of a type with more than two words.
  @inlinable @inline(never)
  static func withBoxOrTemplate(
    _ context: UnsafeMutableRawPointer?, _ function: Multicast.Function?, _ isValue: Bool,
    _ body: (P) -> Bool
  ) -> Bool {
    if isValue {
      return body(Unmanaged<ValueBox<P>>.fromOpaque(context!).takeUnretainedValue().value)
    }
    return withUnsafeTemporaryAllocation(
      byteCount: MemoryLayout<P>.size, alignment: MemoryLayout<P>.alignment
    ) { words in
      let template = unsafeBitCast(function, to: UnsafeRawPointer.self)
      words.baseAddress!.copyMemory(from: template, byteCount: MemoryLayout<P>.size)
      words.storeBytes(of: context, as: UnsafeMutableRawPointer?.self)
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

/// A delegate that is not an object, but is to be kept.
@usableFromInline
final class ValueBox<P> {
  @usableFromInline let value: P

  init(_ value: P) { self.value = value }
}

/// The words of a delegate without the object: one for each pair of a type `P` and the type of what
/// is in it, for good.
enum ExistentialTemplates {
  private struct Key: Hashable, Sendable {
    let type: ObjectIdentifier
    let ofContent: ObjectIdentifier
    let ofObject: ObjectIdentifier
  }

  /// `@unchecked`: the memory behind the pointer is never changed, and never freed.
  private struct Template: @unchecked Sendable {
    let words: UnsafeRawPointer
  }

  private static let templates = Locked<[Key: Template]>([:])

  static func template<P>(of delegate: P, _ object: AnyObject) -> UnsafeRawPointer {
    let key = Key(
      type: ObjectIdentifier(P.self), ofContent: ObjectIdentifier(contentType(of: delegate)),
      ofObject: ObjectIdentifier(type(of: object)))
    return templates.withLock { templates -> Template in
      if let template = templates[key] { return template }
      let words = UnsafeMutableRawPointer.allocate(
        byteCount: MemoryLayout<P>.size, alignment: MemoryLayout<P>.alignment)
      withUnsafeBytes(of: delegate) {
        words.copyMemory(from: $0.baseAddress!, byteCount: MemoryLayout<P>.size)
      }
      words.storeBytes(of: nil, as: UnsafeRawPointer?.self)
      let template = Template(words: UnsafeRawPointer(words))
      templates[key] = template
      return template
    }.words
  }

  /// The type of what a protocol's value has in it: `C`, or `Optional<C>`, if that conforms, too.
  static func contentType<P>(of delegate: P) -> Any.Type {
    if let optional = P.self as? any AnyOptional.Type {
      return optional.contentType(of: delegate)
    }
    return type(of: delegate as Any)
  }
}

/// `Optional`, without the type that it wraps.
private protocol AnyOptional {
  static func contentType(of value: Any) -> Any.Type
}

extension Optional: AnyOptional {
  fileprivate static func contentType(of value: Any) -> Any.Type {
    // The cast looks at the value's own type first, which is this one.
    guard let wrapped = value as! Self else { return Self.self }
    return ExistentialTemplates.contentType(of: wrapped)
  }
}
