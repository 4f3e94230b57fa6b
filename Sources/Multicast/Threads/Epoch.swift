import Synchronization

/// A moment in the order of invocations and of lists that were replaced.
///
/// There is one counter for the process. An invocation stores the current epoch in its frame before
/// it publishes the frame. A writer that replaces a list advances the epoch afterwards, and retires
/// the old list with the new epoch. An invocation whose epoch is not older than the retired epoch
/// cannot read the retired list. One counter serves all multicasts, so that the epochs that a
/// thread stores in its frames never decrease.
struct Epoch: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt64

  init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Before every epoch that was ever current.
  static var none: Epoch { Epoch(rawValue: 0) }
  /// After every epoch. For a frame that reads no list.
  static var latest: Epoch { Epoch(rawValue: .max) }

  static func < (a: Epoch, b: Epoch) -> Bool { a.rawValue < b.rawValue }
  static func > (a: Epoch, b: Epoch) -> Bool { a.rawValue > b.rawValue }

  // MARK: - The counter

  private static let counter = Atomic<UInt64>(1)
  private static let fenced = Atomic<UInt64>(0)
  private static let hasFenceFailed = Atomic<Bool>(false)

  /// Acquire: a thread that reads an epoch sees the writer's changes from before that epoch.
  static var current: Epoch {
    Epoch(rawValue: counter.load(ordering: .acquiring))  // order: epoch
  }

  /// Acquire and release: a reader of the new epoch sees this thread's earlier changes.
  static func advance() -> Epoch {
    // order: epoch
    //~ epoch_not_advanced epoch_too_high
    Epoch(rawValue: counter.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
  }

  /// Makes a heavy fence for all changes before the current epoch, by any thread. An invocation
  /// that is not found in the frames afterwards sees these changes.
  ///
  /// - Returns: false if the kernel refuses. Nothing may be reclaimed then.
  static func fence() -> Bool {
    let current = self.current
    guard Fence.heavy() else {  //~ no_heavy_fence fence_under_lock
      hasFenceFailed.store(true, ordering: .releasing)  // order: failed
      Waits.wake()  // some wait for an event that will never come
      return false
    }
    // Release: pairs with `isFenced`. Its caller looks at the frames after the fence.
    fenced.max(current.rawValue, ordering: .releasing)  // order: fenced_epoch
    return true
  }

  /// Whether a heavy fence was made since this epoch began.
  var isFenced: Bool { rawValue <= Self.fenced.load(ordering: .acquiring) }  // order: fenced_epoch

  /// Whether the kernel ever refused a fence. There may be removals then that never complete.
  static var isBroken: Bool { hasFenceFailed.load(ordering: .acquiring) }  // order: failed
}
