import MulticastShims
import Synchronization

/// The asymmetric fence. It consists of a light half for invocations and a heavy half for writers.
///
/// An invocation publishes its frame by stores, executes the light fence, and then reads data that
/// writers change. A writer makes its change, executes the heavy fence, and then reads the frames.
/// At least one of the two sides sees the other's stores.
///
/// If the kernel supports expedited membarrier, the light fence is only a compiler barrier, and the
/// heavy fence makes every running thread of the process execute a fence instruction. Without
/// membarrier (in an old kernel or a sandbox), both halves are full fences. Both sides also execute
/// full fences for a multicast that changes often (see `Bias`).
enum Fence {
  /// Set only by `start`, before the first thread record exists, and thus before the first light
  /// fence.
  nonisolated(unsafe) private(set) static var isAsymmetric = false

  static func start() {
    isAsymmetric = shims_membarrier_register()
  }

  /// Registers the child of a fork, which to the kernel is a new process. The child has only one
  /// thread, so no thread can need a heavy fence earlier. If the kernel refuses, the next call to
  /// `heavy` reports the failure.
  static func restartInChild() {
    if isAsymmetric { _ = shims_membarrier_register() }
  }

  static func light(asymmetric: Bool) {
    if asymmetric { shims_compiler_fence() } else { shims_full_fence() }
  }

  /// The fence that a thread needs after a change, before it reads the frames of invocations.
  enum Need: UInt8 {
    /// No fence is needed, because only this thread's own frames matter.
    case none
    case full
    case heavy

    static func > (a: Need, b: Need) -> Bool { a.rawValue > b.rawValue }
  }

  static func full() { shims_full_fence() }

  // MARK: - Heavy fences

  private static let begun = Atomic<UInt64>(0)
  private static let done = Atomic<UInt64>(0)
  private static let hasFailed = Atomic<Bool>(false)

  /// Executes a heavy fence. If the caller then reads the frames and misses an invocation, that
  /// invocation sees all changes that any thread made before the fence began.
  ///
  /// - Returns: false if the kernel refuses the barrier although it accepted the registration. If
  ///   it does, the caller must not reclaim anything.
  static func heavy() -> Bool {
    Lock.checkNoneIsHeld()  //~ fence_under_lock
    // Count the fence before the barrier. If it were counted later, a thread could make a change
    // and read the stamp between the barrier and the count, and mistake this fence for a later one.
    // order: fences
    let number = begun.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
    guard makeBarrier() else {
      hasFailed.store(true, ordering: .releasing)  // order: failed
      Waits.wake()  // some threads wait for an event that will never come
      return false
    }
    // Release: pairs with the acquire in `Stamp.isFenced`, whose caller then reads the frames.
    done.max(number, ordering: .releasing)  // order: fences
    return true
  }

  private static func makeBarrier() -> Bool {
    if isAsymmetric { return shims_membarrier() }  //~ no_heavy_fence
    shims_full_fence()
    return true
  }

  /// Whether the kernel has ever refused a heavy fence, so that some removals may never complete.
  static var isBroken: Bool { hasFailed.load(ordering: .acquiring) }  // order: failed

  /// A moment in the order of heavy fences.
  struct Stamp {
    let rawValue: UInt64

    /// The current moment. The caller executes a full fence between its change and this call, so
    /// that the change is visible before any heavy fence with a higher number begins.
    static var now: Stamp { Stamp(rawValue: begun.load(ordering: .acquiring)) }  // order: fences

    /// Whether some heavy fence that began after this moment has completed.
    var isFenced: Bool { done.load(ordering: .acquiring) > rawValue }  // order: fences
  }
}
