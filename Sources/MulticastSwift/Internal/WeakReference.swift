import MulticastRuntime

/// A reference to an object that does not keep it alive, as the context of a registration.
///
/// There are two forms, with the same behaviour. The first has no memory of its own: the context is
/// the object, and the registration owns an unowned reference to it. So the object's address is not
/// used again before the registration has ended. The second form, the trait `WeakBoxes`, uses the
/// language alone: the context is a box with a `weak` variable. The second form is slower, and for
/// runtimes that have other functions.
enum WeakReference {
  /// The functions of `multicast_add_options`. `lock` returns the object with a strong reference,
  /// or NULL if it has ended.
  static var lock: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    #if WeakBoxes
      return { context in
        Unmanaged<WeakBox>.fromOpaque(context!)._withUnsafeGuaranteedRef { box in
          box.object.map { Unmanaged.passRetained($0).toOpaque() }
        }
      }
    #else
      return swift_tryRetain
    #endif
  }

  static var unlock: @convention(c) (UnsafeMutableRawPointer?) -> Void { swift_release }

  static var release: @convention(c) (UnsafeMutableRawPointer?) -> Void {
    #if WeakBoxes
      return swift_release
    #else
      return swift_unownedRelease
    #endif
  }

  /// The context of all registrations of this object, with a reference for one of them.
  static func retain(_ object: AnyObject) -> UnsafeMutableRawPointer {
    #if WeakBoxes
      return Unmanaged.passRetained(WeakBox.box(of: object)).toOpaque()
    #else
      let context = Unmanaged.passUnretained(object).toOpaque()
      swift_unownedRetain(context)
      return context
    #endif
  }

  /// Passes the context of all registrations of this object to `body`, also in its `deinit`; nil if
  /// it has certainly none.
  @inline(__always)
  static func withContext<Result>(
    of object: AnyObject, _ body: (UnsafeMutableRawPointer) -> Result
  ) -> Result? {
    #if WeakBoxes
      guard let box = WeakBox.knownBox(of: object) else { return nil }
      return withExtendedLifetime(box) { body(Unmanaged.passUnretained(box).toOpaque()) }
    #else
      return body(Unmanaged.passUnretained(object).toOpaque())
    #endif
  }
}

#if WeakBoxes
  /// One box for each object, as long as a registration refers to it: so the delegates of two
  /// registrations are equal.
  ///
  /// `@unchecked`: the references are set before another thread can see the box. After that they
  /// are only read; the runtime orders these reads with the end of the object.
  final class WeakBox: @unchecked Sendable {
    private(set) weak var object: AnyObject?
    /// Its address is not used again while the box exists: an address leads to one object.
    private unowned let address: AnyObject

    private init(_ object: AnyObject) {
      self.object = object
      address = object
    }

    private struct Boxes: Sendable {
      var ofAddress: [UInt: WeakBox] = [:]
      /// Boxes without a registration are dropped when there are that many.
      var limit = 64
    }

    private static let boxes = Locked(Boxes())

    /// `@unchecked`: it only passes an object on.
    private struct Passed: @unchecked Sendable {
      let object: AnyObject

      var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) }
    }

    /// The box of an object that may be in its `deinit`; nil if it has no registration.
    static func knownBox(of object: AnyObject) -> WeakBox? {
      let address = Passed(object: object).address
      return boxes.withLock { $0.ofAddress[address] }
    }

    static func box(of object: AnyObject) -> WeakBox {
      let passed = Passed(object: object)
      return boxes.withLock { boxes in
        if let box = boxes.ofAddress[passed.address] { return box }
        if boxes.ofAddress.count >= boxes.limit {
          dropUnused(&boxes.ofAddress)
          boxes.limit = 64 + 2 * boxes.ofAddress.count
        }
        let box = WeakBox(passed.object)
        boxes.ofAddress[passed.address] = box
        return box
      }
    }

    /// A box ends without code of others: it has no strong reference.
    private static func dropUnused(_ boxes: inout [UInt: WeakBox]) {
      var unused: [UInt] = []
      var index = boxes.startIndex
      while index != boxes.endIndex {
        if isKnownUniquelyReferenced(&boxes.values[index]) { unused.append(boxes.keys[index]) }
        boxes.formIndex(after: &index)
      }
      for address in unused { boxes[address] = nil }
    }
  }
#endif
