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
