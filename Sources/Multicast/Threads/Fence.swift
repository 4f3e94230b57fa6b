import MulticastShims
import Synchronization

/// The asymmetric fence: a light half for invocations, a heavy half for writers.
///
/// An invocation publishes its frame by stores, makes the light fence, and then reads the data of
/// writers. A writer makes its change, makes the heavy fence, and then reads the frames. At least
/// one of the two sees the other.
///
/// If the kernel has the expedited membarrier, the light fence orders for the compiler only, and
/// the heavy fence makes every running thread of the process execute a fence instruction. Without
/// membarrier (an old kernel, a sandbox) both are full fences. `Bias` has the third way: a
/// multicast that changes all the time has full fences on both sides.
enum Fence {
  /// Set by `start` only, before the first thread record exists, so before the first light fence.
  nonisolated(unsafe) private(set) static var isAsymmetric = false

  static func start() {
    isAsymmetric = shims_membarrier_register()
  }

  /// The child of a fork is a new process for the kernel, and has one thread. If the kernel refuses
  /// to register it, `heavy` reports that.
  static func restartInChild() {
    if isAsymmetric { _ = shims_membarrier_register() }
  }

  static func light(asymmetric: Bool) {
    if asymmetric { shims_compiler_fence() } else { shims_full_fence() }
  }

  /// The fence that a thread needs after a change, before it reads the frames of invocations.
  enum Need: UInt8 {
    /// None: only this thread's own frames matter.
    case none
    case full
    case heavy

    static func > (a: Need, b: Need) -> Bool { a.rawValue > b.rawValue }
  }

  /// For both sides, where no heavy fence is made.
  static func full() { shims_full_fence() }

  /// - Returns: false if the kernel refuses the barrier that it had granted. Nothing may be
  ///   reclaimed then.
  static func heavy() -> Bool {
    Lock.checkNoneIsHeld()
    guard isAsymmetric else {
      shims_full_fence()
      return true
    }
    return shims_membarrier()
  }
}

/// The fence between what an invocation publishes of a call and what it reads then. A type, so
/// that each loop is compiled for one fence, without a test at run time.
protocol CallFence {
  static func make()
}

/// That of a biased invocation.
enum LightFence: CallFence {
  @inline(__always) static func make() { Fence.light(asymmetric: true) }
}

/// That of a fenced or watched invocation.
enum FullFence: CallFence {
  @inline(__always) static func make() { Fence.full() }
}
