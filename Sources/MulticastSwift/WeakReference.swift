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

  /// The context of all registrations of this object.
  static func context(of object: AnyObject) -> UnsafeMutableRawPointer {
    #if WeakBoxes
      return Unmanaged.passUnretained(WeakBox.box(of: object)).toOpaque()
    #else
      return Unmanaged.passUnretained(object).toOpaque()
    #endif
  }

  /// Releases the reference of the context.
  static func retain(_ context: UnsafeMutableRawPointer) {
    #if WeakBoxes
      swift_retain(context)
    #else
      swift_unownedRetain(context)
    #endif
  }
}

#if WeakBoxes
  /// One box for each object, as long as the object lives: so the delegates of two registrations
  /// are equal.
  ///
  /// `@unchecked`: `object` is set before another thread can see the box. After that it is only
  /// read; the runtime orders these reads with the end of the object.
  private final class WeakBox: @unchecked Sendable {
    weak var object: AnyObject?

    private init(_ object: AnyObject) { self.object = object }

    private struct Boxes: Sendable {
      var ofAddress: [UInt: WeakBox] = [:]
      /// Boxes of objects that have ended are dropped when there are that many.
      var limit = 64
    }

    private static let boxes = Locked(Boxes())

    /// `@unchecked`: it only keeps an object for a while.
    private struct Kept: @unchecked Sendable {
      let object: AnyObject?
    }

    static func box(of object: AnyObject) -> WeakBox {
      let object = Kept(object: object)
      let address = UInt(bitPattern: Unmanaged.passUnretained(object.object!).toOpaque())
      // A box may have the last reference to an object of others, whose `deinit` may come back: it
      // is released outside of the lock.
      var others: [Kept] = []
      let box = boxes.withLock { boxes in
        if let box = boxes.ofAddress[address] {
          others.append(Kept(object: box.object))
          if others[0].object === object.object { return box }
        }
        if boxes.ofAddress.count >= boxes.limit {
          boxes.ofAddress = boxes.ofAddress.filter {
            others.append(Kept(object: $0.value.object))
            return others.last!.object != nil
          }
          boxes.limit = 64 + 2 * boxes.ofAddress.count
        }
        let box = WeakBox(object.object!)
        boxes.ofAddress[address] = box
        return box
      }
      withExtendedLifetime(others) {}
      return box
    }
  }
#endif
