import CMulticast
import MulticastRuntime

// MARK: - Visiting

// The core functions below pass delegates to a closure. Swift cannot store a non-escaping closure
// without copying it to the heap, so the closure is passed to C functions in MulticastRuntime,
// which have Swift's calling convention. The closure receives each delegate's context and function.

/// Calls `multicast_visit`.
@usableFromInline @_silgen_name("multicast_swift_visit")
func visitDelegates(
  _ target: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// Calls `multicast_token_visit`.
@_silgen_name("multicast_swift_visit_token")
func visitDelegate(
  _ token: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// Calls `multicast_enumerate`. For a weak delegate, `body` receives a strong reference.
@_silgen_name("multicast_swift_enumerate")
func enumerateDelegates(
  _ target: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// Converts the result of a visit or an invocation to the number of delegates that were called.
@inlinable @inline(__always)
func checkedCount(_ result: Int64) -> Int { result < 0 ? countOfFailure(result) : Int(result) }

/// Returns 0, since a visit or an invocation that fails has called no delegate. Ends the program if
/// invocations are nested too deeply.
@usableFromInline @inline(never)
func countOfFailure(_ status: Int64) -> Int {
  if status == Int64(Multicast.Status.limit.rawValue) {
    fatalError("MulticastSwift: invocations are nested more than 256 deep on this thread")
  }
  return 0
}

// MARK: - Creating

/// Called with true when the first delegate is added and with false when the last one is removed.
typealias ListenersChanged = @Sendable (_ hasListeners: Bool) -> Void

extension Multicast {
  /// Creates a multicast. Returns the null handle if memory runs out.
  static func create(
    _ options: inout Options, label: String?, listenersChanged: ListenersChanged?
  ) -> Multicast {
    guard let listenersChanged else { return create(&options, label: label) }
    let context = Unmanaged.passRetained(ClosureBox(listenersChanged))
    options.context = context.toOpaque()
    options.release = swift_release
    options.listenersChanged = { context, _, hasListeners in
      Unmanaged<ClosureBox>.fromOpaque(context!).takeUnretainedValue().closure(hasListeners)
    }
    let target = create(&options, label: label)
    if target.id == 0 { context.release() }
    return target
  }

  private static func create(_ options: inout Options, label: String?) -> Multicast {
    guard let label else { return create(&options) }
    return label.withCString {
      options.label = $0
      return create(&options)
    }
  }

  private final class ClosureBox: Sendable {
    let closure: ListenersChanged

    init(_ closure: @escaping ListenersChanged) { self.closure = closure }
  }
}

// MARK: - Describing

extension Multicast {
  /// The text of `multicast_describe`.
  var describedText: String {
    var bytes: [UInt8] = []
    _ = withUnsafeMutablePointer(to: &bytes) { bytes in
      describe(
        to: { context, text, size in
          let bytes = context!.assumingMemoryBound(to: [UInt8].self)
          bytes.pointee.append(contentsOf: UnsafeRawBufferPointer(start: text, count: size))
          return true
        }, UnsafeMutableRawPointer(bytes))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
