import MulticastRuntime

/// A weak reference to an object, as the context of a registration.
///
/// There are two implementations with the same behaviour. By default the context is the object, and
/// the registration holds an unowned reference to it. An unowned reference needs no additional
/// memory, and the object's address is not reused while the registration exists. With the package
/// trait `WeakBoxes`, the context is a box with a `weak` variable. A box is slower, but does not
/// depend on the runtime's ABI. macOS always uses the box, which also works with Objective-C
/// objects.
enum WeakReference {
  /// The function that returns the object with a strong reference, or NULL if the object has been
  /// deallocated. `lock`, `unlock` and `release` are passed to the core in the multicast's options.
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

  static var unlock: @convention(c) (UnsafeMutableRawPointer?) -> Void {
    #if WeakBoxes
      return { Unmanaged<AnyObject>.fromOpaque($0!).release() }
    #else
      return swift_release
    #endif
  }

  static var release: @convention(c) (UnsafeMutableRawPointer?) -> Void {
    #if WeakBoxes
      return swift_release
    #else
      return swift_unownedRelease
    #endif
  }

  /// Returns the context that all registrations of an object share, and retains it for one of them.
  static func retain(_ object: AnyObject) -> UnsafeMutableRawPointer {
    #if WeakBoxes
      return Unmanaged.passRetained(WeakBox.box(of: object)).toOpaque()
    #else
      let context = Unmanaged.passUnretained(object).toOpaque()
      swift_unownedRetain(context)
      return context
    #endif
  }

  /// Calls `body` with the context that all registrations of an object share. The object's `deinit`
  /// may be running. Returns nil if the object is known to have no registration.
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
  /// A box with a weak reference. All registrations of an object share one box, so that their
  /// delegates are equal.
  ///
  /// `@unchecked` is safe because the references are set before another thread can see the box, and
  /// are only read afterwards. The runtime synchronizes these reads with the object's deallocation.
  final class WeakBox: @unchecked Sendable {
    private(set) weak var object: AnyObject?
    /// Prevents reuse of the object's address while the box exists, so that an address identifies
    /// one object.
    private unowned let address: AnyObject

    private init(_ object: AnyObject) {
      self.object = object
      address = object
    }

    private struct Boxes: Sendable {
      var ofAddress: [UInt: WeakBox] = [:]
      /// If there are this many boxes, an insertion first drops the boxes that have no
      /// registration.
      var limit = 64
    }

    private static let boxes = Locked(Boxes())

    /// Carries an object into a closure. `@unchecked` is safe because the closure only stores the
    /// object.
    private struct Passed: @unchecked Sendable {
      let object: AnyObject

      var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) }
    }

    /// Returns an object's box, even while the object's `deinit` is running; nil if the object has
    /// no registration.
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

    /// Deallocating a box runs none of the program's code, because a box holds no strong reference.
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
