import Synchronization

/// Where the calls of a delegate wait to be made later, instead of being made by invocations.
struct Destination {
  /// The slot of a queue, which the core does not know.
  let queue: UnsafeMutableRawPointer
  /// The handle of the lifetime that all registrations share which deliver there.
  let recipients: UInt64
}

/// What the core asks of the layer that keeps queues: set before there is a destination.
enum Delivery {
  /// Has a call wait. The delegate may have been removed already: then none does.
  ///
  /// - Parameter frame: The invocation's, which keeps the copy of its payload for further calls.
  /// - Returns: whether a call was taken in.
  typealias Queue =
    @convention(c) (
      _ queue: UnsafeMutableRawPointer, _ token: UInt64, _ event: UInt32,
      _ payload: UnsafeRawPointer?, _ size: Int,
      _ frame: UnsafeMutableRawPointer
    ) -> Bool

  /// Lets go of the payload that a frame has kept.
  typealias LetGo = @convention(c) (_ payload: UnsafeMutableRawPointer) -> Void

  /// Takes back the calls of a delegate that has just been removed: when this returns, those that
  /// were begun are named in a frame, and no other will be.
  typealias Retract =
    @convention(c) (_ queue: UnsafeMutableRawPointer, _ extras: UnsafeMutableRawPointer) -> Void

  /// Whether there has ever been a destination.
  static var isInUse: Bool { hasStarted.load(ordering: .acquiring) }
  private static let hasStarted = Atomic<Bool>(false)

  /// A thread has ended inside of a run, named as its frame did.
  typealias RunEnds = @convention(c) (_ run: UInt) -> Void

  // Written once, under the slab lock, by what makes the first queue; read by who has its handle.
  nonisolated(unsafe) private(set) static var queue: Queue? = nil
  nonisolated(unsafe) private(set) static var letGo: LetGo? = nil
  nonisolated(unsafe) private(set) static var retract: Retract? = nil
  nonisolated(unsafe) private(set) static var runEnds: RunEnds? = nil
  nonisolated(unsafe) private(set) static var restartInChild: (@convention(c) () -> Void)? = nil

  static func start(
    queue: @escaping Queue, letGo: @escaping LetGo, retract: @escaping Retract,
    runEnds: @escaping RunEnds, restartInChild: @escaping @convention(c) () -> Void
  ) {
    self.queue = queue
    self.letGo = letGo
    self.retract = retract
    self.runEnds = runEnds
    self.restartInChild = restartInChild
    hasStarted.store(true, ordering: .releasing)  // pairs with the acquire in `isInUse`
  }
}
