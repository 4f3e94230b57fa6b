import MulticastShims
import Synchronization

/// Identifies a thread by two numbers: its number among all threads that ever had a record, and the
/// number of its record. 0 stands for no thread.
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
    /// Counted from 1. A multicast with a single invoker identifies the invoker by this number.
    var number: UInt32
    /// The number of calls with full fences that no multicast has counted yet: see `Bias`. For the
    /// owner only.
    var fencedCalls: UInt32
    /// The first frame that is not in use, and the last frame, which only a look-up of a name may
    /// use. For the owner only.
    var top: UnsafeMutablePointer<Frame.Fields>
    var last: UnsafeMutablePointer<Frame.Fields>
    /// The block that contains the record. Set before the record is published.
    var block: UnsafeMutablePointer<ThreadBlock.Storage>?
    /// The owner's identity.
    let identity: Atomic<ThreadIdentity>
    /// The system's number of the owner. Relaxed is enough, since only reports use it.
    let systemNumber: Atomic<UInt32>
    /// Guarded by the waits' lock: whether the search for a cycle has reached this thread.
    var search: Waits.Search
    /// Guarded by the waits' lock: whether the owner was woken with its key and has not run again
    /// yet, and whether a search has skipped the owner for this reason.
    var isWoken: Bool
    var isPassedOver: Bool
    /// Guarded by the waits' lock: the owner's wait.
    var wait: Wait
    /// Guarded by the waits' lock: the time when the wait began.
    var waitsSince: UInt64
    /// Slots for the owner's next multicasts. For the owner only.
    var vacant: VacantSlots
    /// The invocations that the owner has deferred, by multicast: see `Deferrals`. Changed by the
    /// owner, under the waits' lock.
    var deferrals: UnsafeMutableRawPointer?
    /// The owner's adds that are replaying kept invocations, the innermost first: see `Replay`.
    /// Changed by the owner, under the waits' lock.
    var replays: UnsafeMutableRawPointer?
    /// The name of the notification that calls observers of a prefix, and the frame of that
    /// invocation; the innermost one if they are nested. For the owner only.
    var named: (name: UnsafePointer<CChar>, frame: UnsafeMutablePointer<Frame.Fields>)?
  }

  /// The highest number of nested invocations and runs of a thread.
  static let frameLimit: UInt32 = 256
  /// There is one more frame, so that a name can be looked up in the innermost call.
  private static let frameCount = frameLimit + 1
  /// The size of the space for the calls that the outermost run of a queue has copied.
  static let batchSize = 512
  private static let batchOffset = 192
  private static let headerSize = batchOffset + batchSize
  /// The size is rounded up. In each of 64 adjacent records, the outermost frame is then in a
  /// single cache line, and in the same page as the header.
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

  /// The calling thread's record, for use where the thread is known to have one.
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

  /// Initializes a record that consists of zeros. No other thread knows its owner yet.
  func reset() {
    precondition(MemoryLayout<Storage>.size <= Self.batchOffset)  // evaluated by the compiler
    storage.pointee.top = frame(0).fields
    storage.pointee.last = frame(Self.frameLimit).fields
    wait = .nothing
  }

  /// Called when the thread no longer needs the record. Ends the ownership.
  @inline(never) func giveBack() {
    giveBackSlots()  //~ vacant_slots_not_given_back
    ThreadBlock(storage.pointee.block.unsafelyUnwrapped).giveBack(self)
  }

  func giveBackSlots() { storage.pointee.vacant.giveBack(to: .multicasts) }

  func frame(_ depth: UInt32) -> Frame {
    let frames = UnsafeMutableRawPointer(storage) + Self.headerSize
    return Frame(frames.assumingMemoryBound(to: Frame.Fields.self) + Int(depth))
  }

  /// The space for copied calls. For the owner only.
  var batch: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(storage) + Self.batchOffset
  }

  // MARK: - Fields

  var number: UInt32 { storage.pointee.number }

  /// The first frame that is not in use.
  var top: Frame { Frame(storage.pointee.top) }

  /// The owner's identity, or none. The identity of another thread may be out of date at any
  /// moment. Release and acquire: a record that has an identity is initialized.
  var identity: ThreadIdentity {
    get { storage.pointee.identity.load(ordering: .acquiring) }  // order: record
    // order: record
    nonmutating set { storage.pointee.identity.store(newValue, ordering: .releasing) }
  }

  /// The owner's wait, guarded by the waits' lock. The stored wait is not valid in a record without
  /// an owner, which may consist of zeros.
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

  /// Takes the frame for an invocation or run. The frame is in use once it is published.
  ///
  /// - Returns: nil if too many invocations and runs are nested.
  func push() -> Frame? {
    let frame = storage.pointee.top
    if frame == storage.pointee.last { return nil }
    storage.pointee.top = frame + 1
    checkPush(Frame(frame))
    return Frame(frame)
  }

  /// Ends the use of the innermost frame.
  func pop(_ frame: Frame) {
    checkPop(frame)
    frame.withdraw()  //~ frame_not_withdrawn
    storage.pointee.top = frame.fields  //~ frame_not_popped
  }

  /// Whether one more invocation can be nested.
  var hasRoom: Bool { storage.pointee.top != storage.pointee.last }

  /// Whether this thread is inside an invocation or a run.
  var isInside: Bool { top != frame(0) }

  /// The frame in which this thread is calling a delegate whose registration matches, or nil. If
  /// calls are nested, the innermost such frame.
  func innermostCall(where matches: (Token) -> Bool) -> Frame? {
    var frame = storage.pointee.top
    while frame != self.frame(0).fields {
      frame -= 1
      let token = Frame(frame).hazard
      if token.kind == .registration && matches(token) { return Frame(frame) }
    }
    return nil
  }

  /// The name for which an invocation calls observers of a prefix; nil if it calls others.
  func name(in frame: Frame) -> UnsafePointer<CChar>? {
    guard let named = storage.pointee.named, named.frame == frame.fields else { return nil }
    return named.name
  }

  /// Visits the registrations whose delegates this thread is calling, beginning with the outermost.
  func forEachCall(_ body: (Token) -> Void) {
    var frame = self.frame(0).fields
    while frame != storage.pointee.top {
      let token = Frame(frame).hazard
      if token.kind == .registration { body(token) }
      frame += 1
    }
  }

  // MARK: - For all threads

  /// The first matching frame in use, searched from the outermost one.
  ///
  /// Frames are read up to the first one that is not in use. If a call has not returned, its frame
  /// is in use, and so are all frames below it. A frame that a reader misses belongs to an
  /// invocation that began after the reader's heavy fence, and sees the changes that the reader
  /// made before it.
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

  /// Empties the stack of a thread that no longer exists: it has ended inside a call, or it was a
  /// thread of the parent of a fork.
  ///
  /// - Parameters:
  ///   - release: Called for each payload that a frame retained. It is called under the waits'
  ///     lock, because a fork in between would leave a reference that is in no frame.
  ///   - willLeave: Called for each frame, with no lock held. The frame is still in use, so this
  ///     function may invoke multicasts.
  ///   - didLeave: Called for each frame after it was withdrawn.
  func clear(
    release: (_ payload: UInt, _ target: Target) -> Void,
    willLeave: (_ frame: Frame, _ target: Target) -> Void,
    didLeave: (_ target: Target) -> Void
  ) {
    var depth: UInt32 = 0
    forEachFrame { _, _ in depth &+= 1 }
    if depth == 0 && !isInside { return }  // leaves the pages of an idle record unwritten
    storage.pointee.top = self.frame(depth).fields
    storage.pointee.named = nil
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

/// The stack address at which the use of a frame began. Empty in builds without checks.
struct StackMark {
  #if MULTICAST_INTERNAL_CHECKS
    var address: UInt = 0
  #endif
}

/// The checks are for the owner of a record. The frames below the top are in use by calls that are
/// still on the stack. The frames from the top on are not in use.
extension ThreadRecord {
  /// Called after a frame was pushed and before anything is written to it.
  func checkPush(_ frame: Frame, _ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      let here = UInt(shims_stack_address())
      checkStack(below: frame, here, check)
      checkFrames(from: frame, check)
      frame.fields.pointee.stackMark.address = here
    #endif
  }

  /// Called before a frame is popped.
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

  /// Called before the frame above the innermost invocation is used without a push.
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
