/// The words of a delegate without the object: one for each pair of a type `P` and the type of what
/// is in it, for good.
enum Templates {
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
    return Templates.contentType(of: wrapped)
  }
}
