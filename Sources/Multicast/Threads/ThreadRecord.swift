import MulticastShims
import Synchronization

/// The number of a thread among all that ever had a record, and the number of its record; 0 is
/// none.
struct ThreadIdentity: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt64

  private static let recordBits: UInt64 = 30

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(_ thread: UInt64, with record: ThreadRecord) {
    rawValue = thread << Self.recordBits | UInt64(record.number)
  }

  /// The number of the record.
  var record: UInt32 { UInt32(truncatingIfNeeded: rawValue & (1 << Self.recordBits - 1)) }

  static var none: ThreadIdentity { ThreadIdentity(rawValue: 0) }

  var isNone: Bool { rawValue == 0 }

  static func == (a: ThreadIdentity, b: ThreadIdentity) -> Bool { a.rawValue == b.rawValue }
}

/// A thread's stack of hazard frames, which every thread can read.
///
/// Records are never freed. When a thread ends, its record is reused by another thread.
struct ThreadRecord {
  struct Storage: ~Copyable {
    /// From 1. A multicast with a single invoker knows the invoker by this number.
    var number: UInt32
    /// Calls with full fences that no multicast has counted yet: see `Bias`. For the owner only.
    var fencedCalls: UInt32
    /// The first frame that is not in use, and the last frame, which only a look-up of a name may
    /// use. For the owner only.
    var top: UnsafeMutablePointer<Frame.Fields>
    var last: UnsafeMutablePointer<Frame.Fields>
    /// The block of the record. Set before the record is published.
    var block: UnsafeMutablePointer<ThreadBlock.Storage>?
    /// The owner's identity.
    let identity: Atomic<ThreadIdentity>
    /// The system's number of the owner. Relaxed: for people.
    let systemNumber: Atomic<UInt32>
    /// Guarded by the waits' lock: how far the search for a cycle of waits has come here.
    var search: Waits.Search
    /// Guarded by the waits' lock: whether the owner was woken with its key, and has not run again
    /// yet; and whether a search has passed the owner over because of that.
    var isWoken: Bool
    var isPassedOver: Bool
    /// Guarded by the waits' lock: the owner's wait.
    var wait: Wait
    /// Guarded by the waits' lock: the begin of the wait.
    var waitsSince: UInt64
    /// Slots for the owner's next multicasts. For the owner only.
    var vacant: VacantSlots
    /// Invocations that the owner has deferred, by multicast: see `Deferrals`. Changed by the
    /// owner, under the waits' lock.
    var deferrals: UnsafeMutableRawPointer?
    /// The owner's adds that replay, the innermost first: see `Replay`. Changed by the owner, under
    /// the waits' lock.
    var replays: UnsafeMutableRawPointer?
  }

  /// The most nested invocations and runs of a thread.
  static let frameLimit: UInt32 = 256
  /// One more, so that a name can be looked up in the innermost call.
  private static let frameCount = frameLimit + 1
  /// For the calls that the outermost run of a queue has copied.
  static let batchSize = 512
  private static let batchOffset = 128
  private static let headerSize = batchOffset + batchSize
  /// Rounded up, so that the outermost frame is in one cache line, and in the page of the header:
  /// 64 records are one behind the other.
  static let size =
    (headerSize + Int(frameCount) * MemoryLayout<Frame.Fields>.stride + 1023) & ~1023
  private static let alignment = 128

  let storage: UnsafeMutablePointer<Storage>

  init(_ storage: UnsafeMutablePointer<Storage>) { self.storage = storage }

  /// The calling thread's record, or nil if the thread has never used the library.
  static var current: ThreadRecord? {
    guard let record = shims_get_thread_record() else { return nil }
    return ThreadRecord(record.assumingMemoryBound(to: Storage.self))
  }

  /// The calling thread's record, where it is known to have one.
  static var currentAgain: ThreadRecord {
    ThreadRecord(
      shims_get_thread_record_again().unsafelyUnwrapped.assumingMemoryBound(to: Storage.self))
  }

  static func == (a: ThreadRecord, b: ThreadRecord?) -> Bool {
    a.storage == b?.storage
  }

  // MARK: - Memory

  static func allocate() throws(Status) -> ThreadRecord {
    let block = try Allocator.allocateZeroed(size: size, alignment: alignment)
    return ThreadRecord(block.bindMemory(to: Storage.self, capacity: 1))
  }

  /// Initializes a record of zeros. No other thread knows its owner yet.
  func reset() {
    precondition(MemoryLayout<Storage>.size <= Self.batchOffset)  // known to the compiler
    storage.pointee.top = frame(0).fields
    storage.pointee.last = frame(Self.frameLimit).fields
    wait = .nothing
  }

  /// Called when no thread owns the record any more.
  @inline(never) func giveBack() {
    giveBackSlots()  //~ vacant_slots_not_given_back
    ThreadBlock(storage.pointee.block.unsafelyUnwrapped).giveBack(self)
  }

  func giveBackSlots() { storage.pointee.vacant.giveBack(to: .multicasts) }

  func frame(_ depth: UInt32) -> Frame {
    let frames = UnsafeMutableRawPointer(storage) + Self.headerSize
    return Frame(frames.assumingMemoryBound(to: Frame.Fields.self) + Int(depth))
  }

  /// For the owner only.
  var batch: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(storage) + Self.batchOffset
  }

  // MARK: - Fields

  var number: UInt32 { storage.pointee.number }

  /// The first frame that is not in use.
  var top: Frame { Frame(storage.pointee.top) }

  /// The identity of another thread may be out of date at any moment. Release and acquire: a record
  /// that has an identity is initialized.
  var identity: ThreadIdentity {
    get { storage.pointee.identity.load(ordering: .acquiring) }  // order: record
    // order: record
    nonmutating set { storage.pointee.identity.store(newValue, ordering: .releasing) }
  }

  /// Guarded by the waits' lock. Nothing if the record has no owner: it may be zero then.
  var wait: Wait {
    get { identity.isNone ? .nothing : storage.pointee.wait }
    nonmutating set { storage.pointee.wait = newValue }
  }

  /// Guarded by the waits' lock.
  var search: Waits.Search {
    get { storage.pointee.search }
    nonmutating set { storage.pointee.search = newValue }
  }

  // MARK: - For the owner

  /// Takes the frame of an invocation or run that begins. The frame is in use once it is published.
  ///
  /// - Returns: nil if they are nested too deep.
  func push() -> Frame? {
    let frame = storage.pointee.top
    if frame == storage.pointee.last { return nil }
    storage.pointee.top = frame + 1
    checkPush(Frame(frame))
    return Frame(frame)
  }

  /// Ends the use of the innermost frame that was pushed.
  func pop(_ frame: Frame) {
    checkPop(frame)
    frame.withdraw()  //~ frame_not_withdrawn
    storage.pointee.top = frame.fields  //~ frame_not_popped
  }

  /// Whether one more invocation can be nested.
  var hasRoom: Bool { storage.pointee.top != storage.pointee.last }

  /// Whether this thread is inside an invocation or a run.
  var isInside: Bool { top != frame(0) }

  /// The registration whose delegate this thread is calling, the innermost that matches if calls
  /// are nested; or none.
  func innermostCall(where matches: (Token) -> Bool) -> Token {
    var frame = storage.pointee.top
    while frame != self.frame(0).fields {
      frame -= 1
      let token = Frame(frame).hazard
      if token.kind == .registration && matches(token) { return token }
    }
    return .none
  }

  /// The registrations whose delegates this thread is calling, from the outermost.
  func forEachCall(_ body: (Token) -> Void) {
    var frame = self.frame(0).fields
    while frame != storage.pointee.top {
      let token = Frame(frame).hazard
      if token.kind == .registration { body(token) }
      frame += 1
    }
  }

  // MARK: - For all threads

  /// The frames in use, from the outermost.
  ///
  /// Frames are read up to the first that is not in use. If a call has not returned, its frame is
  /// in use, and so are all frames below. A missed frame belongs to an invocation that began after
  /// the reader's heavy fence, and that sees the reader's changes before the fence.
  func firstFrame(where matches: (Frame, _ target: Target, _ hazard: Token) -> Bool) -> Frame? {
    var depth: UInt32 = 0
    while depth < Self.frameCount {
      let frame = self.frame(depth)
      guard let (target, hazard) = frame.published else { return nil }
      if matches(frame, target, hazard) { return frame }
      depth &+= 1  //~ only_outermost_frame
    }
    return nil
  }

  func forEachFrame(_ body: (_ target: Target, _ hazard: Token) -> Void) {
    _ = firstFrame { _, target, hazard in
      body(target, hazard)
      return false
    }
  }

  /// Whether a frame of this thread retains a payload.
  func retains(_ payload: UInt) -> Bool {
    firstFrame { frame, _, _ in frame.payload == payload } != nil
  }

  /// Whether a call of this registration's delegate is on this thread's stack.
  func isCalling(_ token: Token) -> Bool {
    firstFrame { _, _, hazard in hazard == token } != nil
  }

  /// Whether an invocation, run or look-up of this target is on this thread's stack.
  func isInside(_ target: Target) -> Bool {
    firstFrame { _, other, _ in other == target } != nil
  }

  /// Whether a frame for `target` publishes a matching list.
  func isInside(_ target: Target, where matches: (_ list: UInt) -> Bool) -> Bool {
    firstFrame { frame, other, _ in other == target && frame.list != 0 && matches(frame.list) }
      != nil
  }

  /// Empties the stack of a thread that does not exist any more: it has ended inside a call, or it
  /// was a thread of the parent of a fork.
  ///
  /// - Parameters:
  ///   - release: Called for each payload that a frame retained, under the waits' lock: a fork in
  ///     between would leave a reference that no frame has.
  ///   - willLeave: Called for each frame, with no lock held. The frame is still in use, so this
  ///     may invoke.
  ///   - didLeave: Called afterwards.
  func clear(
    release: (_ payload: UInt, _ target: Target) -> Void,
    willLeave: (_ frame: Frame, _ target: Target) -> Void,
    didLeave: (_ target: Target) -> Void
  ) {
    var depth: UInt32 = 0
    forEachFrame { _, _ in depth &+= 1 }
    if depth == 0 && !isInside { return }  // writes to no page of a thread at rest
    storage.pointee.top = self.frame(depth).fields
    while depth > 0 {
      depth &-= 1
      let frame = self.frame(depth)
      Lock.waits.lock()
      let (target, payload) = (frame.target, frame.payload)
      frame.payload = 0
      if payload != 0 { release(payload, target) }
      Lock.waits.unlock()
      frame.clearHazard()
      willLeave(frame, target)
      frame.withdraw()
      storage.pointee.top = frame.fields
      didLeave(target)
    }
  }
}

/// The address of the stack at which a frame began. Empty in builds without checks.
struct StackMark {
  #if MULTICAST_INTERNAL_CHECKS
    var address: UInt = 0
  #endif
}

/// For the owner of a record. The frames below the top are in use, by calls that are still on the
/// stack. The frames from the top on are not in use.
extension ThreadRecord {
  /// A frame has been pushed, and nothing is written to it yet.
  func checkPush(_ frame: Frame, _ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      let here = UInt(shims_stack_address())
      checkStack(below: frame, here, check)
      checkFrames(from: frame, check)
      frame.fields.pointee.stackMark.address = here
    #endif
  }

  /// A frame is about to be popped.
  func checkPop(_ frame: Frame, _ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      let next = Frame(frame.fields + 1)
      check.that(
        top == next,
        """
        an invocation that ends has no inner one that was left by longjmp or by an exception, or \
        that has not ended on another stack
        """,
        depth(of: next), depth(of: top))
      checkStack(below: frame, UInt(shims_stack_address()), check)
      check.that(
        frame.hazard.isNone, "an invocation that ends is in no call", frame.hazard.rawValue)
      check.that(frame.payload == 0, "an invocation that ends has released its payload")
      checkFrames(from: next, check)
    #endif
  }

  /// The frame above the innermost invocation is about to be used, without a push.
  func checkTop(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      checkStack(below: top, UInt(shims_stack_address()), check)
      checkFrames(from: top, check)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    private func depth(of frame: Frame) -> UInt64 {
      UInt64(truncatingIfNeeded: frame.fields - self.frame(0).fields)
    }

    private var isOwned: Bool {
      guard let block = storage.pointee.block else { return false }
      return ThreadBlock(block).owns(self)
    }

    private var last: Frame { Frame(storage.pointee.last) }

    /// - Parameter here: The stack address of the function that uses the frame.
    private func checkStack(below frame: Frame, _ here: UInt, _ check: Check) {
      CallerCode.checkIsSupported(check)
      check.that(isOwned, "a thread owns its record")
      check.that(
        frame.fields >= self.frame(0).fields && frame.fields <= last.fields,
        "the top is within the frames", depth(of: frame), depth(of: last))
      if frame == self.frame(0) { return }
      let outer = Frame(frame.fields - 1)
      check.that(!outer.target.isNone, "a frame below the top is in use", depth(of: outer))
      let address = outer.fields.pointee.stackMark.address
      check.that(
        here < address, "no delegate or visitor is left by longjmp or by an exception", here,
        address)
    }

    private func checkFrames(from first: Frame, _ check: Check) {
      var frame = first.fields
      let end = min(first.fields + 4, last.fields + 1)
      while frame < end {
        check.that(
          Frame(frame).target.isNone, "a frame from the top on is not in use",
          depth(of: Frame(frame)))
        frame += 1
      }
    }
  #endif
}
