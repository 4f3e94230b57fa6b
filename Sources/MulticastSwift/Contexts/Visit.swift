import CMulticast

// The functions of the core that pass delegates to a closure: C functions with the calling
// convention of Swift, in MulticastRuntime. A closure that does not escape cannot be stored in
// Swift, unless it is copied to the heap. The closure gets the context and the function.

/// `multicast_visit`.
@usableFromInline @_silgen_name("multicast_swift_visit")
func visitDelegates(
  _ target: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// `multicast_token_visit`.
@_silgen_name("multicast_swift_visit_token")
func visitDelegate(
  _ token: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// `multicast_enumerate`. A weak delegate is passed with a strong reference.
@_silgen_name("multicast_swift_enumerate")
func enumerateDelegates(
  _ target: UInt64,
  _ body: (UnsafeMutableRawPointer?, Multicast.Function?) -> Bool
) -> Int64

/// How many delegates were passed or called.
@inlinable @inline(__always)
func checkedCount(_ result: Int64) -> Int { result < 0 ? countOfFailure(result) : Int(result) }

/// The count of a visit or an invocation that failed: none was called.
@usableFromInline @inline(never)
func countOfFailure(_ status: Int64) -> Int {
  if status == Int64(Multicast.Status.limit.rawValue) {
    fatalError("MulticastSwift: invocations are nested more than 256 deep on this thread")
  }
  return 0
}
