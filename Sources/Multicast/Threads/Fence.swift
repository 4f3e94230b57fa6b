import MulticastShims
import Synchronization

/// The two halves of an asymmetric fence.
///
/// An invocation publishes what it does with plain stores and `light`, then reads what others
/// changed; a writer changes, calls `heavy`, then reads what invocations published. At least one of
/// the two sees the other. With the kernel's expedited barrier `light` stops the compiler alone,
/// and `heavy` makes every running thread of the process execute a fence; without it (an old
/// kernel, a sandbox) both are full fences.
enum Fence {
  /// Fixed by `start`, before the first record of a thread exists, so before the first `light`.
  nonisolated(unsafe) private(set) static var isAsymmetric = false

  static func start() {
    #if !MULTICAST_WITHOUT_MEMBARRIER
      isAsymmetric = shims_membarrier_register()
    #endif
  }

  /// The child of a fork is a new process to the kernel, and has one thread: where it is refused
  /// what its parent had, `heavy` reports that.
  static func restartInChild() {
    if isAsymmetric { _ = shims_membarrier_register() }
  }

  @inline(__always) static func light(asymmetric: Bool) {
    if asymmetric { shims_compiler_fence() } else { shims_full_fence() }
  }

  /// - Returns: false when the kernel refuses what it had granted: nothing may be freed then.
  static func heavy() -> Bool {
    Lock.checkNoneIsHeld()
    guard isAsymmetric else {
      shims_full_fence()
      return true
    }
    return shims_membarrier()
  }
}
