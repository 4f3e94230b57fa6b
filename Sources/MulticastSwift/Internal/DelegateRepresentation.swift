import CMulticast
import MulticastRuntime

/// Converts a delegate of type `P` to the two fields of a `Multicast.Delegate`, and back.
///
/// The context is the object. The function pointer is never called; it stores the rest of the value
/// of type `P`. A value of a class-bound protocol consists of two words, the object and the witness
/// table, which fit into the two fields. Values of other protocols have more words. Apart from the
/// object, these words are the same for all objects of a class, and `ExistentialTemplates` stores
/// them.
@usableFromInline
enum DelegateRepresentation<P> {
  /// The delegate as an object; nil if it is a value.
  ///
  /// An object can be stored only if the other words of the value depend on nothing but the
  /// object's class. This is the case if the first word is the object, because then no other word
  /// owns memory.
  static func object(of delegate: P) -> AnyObject? {
    // The fast path for most delegates avoids a dynamic cast.
    let type = unsafeBitCast(P.self as Any.Type, to: UnsafeRawPointer.self)
    if multicast_swift_is_class_bound(type) {
      return withUnsafeBytes(of: delegate) { $0.load(as: AnyObject.self) }
    }
    guard MemoryLayout<P>.size >= MemoryLayout<UnsafeRawPointer>.size else { return nil }
    let object = delegate as AnyObject
    let first = withUnsafeBytes(of: delegate) { $0.load(as: UnsafeRawPointer.self) }
    return first == UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque()) ? object : nil
  }

  /// The function pointer for a delegate that is an object.
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

  /// Calls `body` with the delegate that a context and a function pointer represent. The delegate
  /// is borrowed, so the caller must keep the object alive.
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
    // P is 8 or 16 bytes long and aligned to 8 bytes, so it consists of either the first word or
    // both words. Write the words as one vector, because after two separate stores, a load of both
    // words would stall: the processor cannot forward two stores to one load.
    var words = SIMD2(UInt(bitPattern: context), unsafeBitCast(function, to: UInt.self))
    return withUnsafeMutablePointer(to: &words) {
      lend(UnsafeMutableRawPointer($0).assumingMemoryBound(to: P.self), to: body)
    }
  }

  /// Like `withDelegate`, but for boxed values and for types with more than two words.
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

  /// Calls `body` with a value in memory. Moves the value out and back, because a copy would retain
  /// and release the object.
  @inlinable @inline(__always)
  static func lend(_ delegate: UnsafeMutablePointer<P>, to body: (P) -> Bool) -> Bool {
    let lent = delegate.move()
    let result = body(lent)
    delegate.initialize(to: consume lent)
    return result
  }
}

/// Holds a strong delegate that is a value.
@usableFromInline
final class ValueBox<P> {
  @usableFromInline let value: P

  init(_ value: P) { self.value = value }
}

/// Templates for values of protocols that are not class-bound. A template contains all words of
/// such a value except the object. There is one template for each combination of a protocol type
/// `P` and a content type. Templates are never freed.
enum ExistentialTemplates {
  private struct Key: Hashable, Sendable {
    let type: ObjectIdentifier
    let ofContent: ObjectIdentifier
    let ofObject: ObjectIdentifier
  }

  /// `@unchecked` is safe because the memory is never modified or freed.
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

  /// The type of a protocol value's content. It is a class `C` or, because optionals can also
  /// conform to protocols, `Optional<C>`.
  static func contentType<P>(of delegate: P) -> Any.Type {
    if let optional = P.self as? any AnyOptional.Type {
      return optional.contentType(of: delegate)
    }
    return type(of: delegate as Any)
  }
}

/// `Optional` of any wrapped type.
private protocol AnyOptional {
  static func contentType(of value: Any) -> Any.Type
}

extension Optional: AnyOptional {
  fileprivate static func contentType(of value: Any) -> Any.Type {
    // The value's dynamic type is `Self`. The cast compares this type first, so it does not unwrap
    // the optional.
    guard let wrapped = value as! Self else { return Self.self }
    return ExistentialTemplates.contentType(of: wrapped)
  }
}
