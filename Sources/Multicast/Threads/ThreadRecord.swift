import MulticastShims
import Synchronization

/// Identifies a thread by two numbers: its number among all threads that have ever had a record,
/// and the number of its record. 0 means no thread.
struct ThreadIdentity: RawRepresentable, AtomicRepresentable {
  let rawValue: UInt64

  private static let recordBits: UInt64 = 30

  init(rawValue: UInt64) { self.rawValue = rawValue }

  init(_ thread: UInt64, with record: ThreadRecord) {
    rawValue = thread << Self.recordBits | UInt64(record.number)
  }

  var record: UInt32 { UInt32(truncatingIfNeeded: rawValue & (1 << Self.recordBits - 1)) }

  static var none: ThreadIdentity { ThreadIdentity(rawValue: 0) }

  var isNone: Bool { rawValue == 0 }

  static func == (a: ThreadIdentity, b: ThreadIdentity) -> Bool { a.rawValue == b.rawValue }
}

/// A thread's stack of hazard frames, readable by every thread.
///
/// Records are never freed. After a thread has ended, another thread can reuse its record.
struct ThreadRecord {
  struct Storage: ~Copyable {
    /// The number of the record, counted from 1. A multicast with a single invoker identifies the
    /// invoker by this number.
    var number: UInt32
    /// The number of calls with full fences that have not been added to a multicast's count yet
    /// (see `Bias`). Only the owner uses this field.
    var fencedCalls: UInt32
    /// `top` is the first frame that is not in use. `last` is the last frame, which is reserved for
    /// lookups of names. Only the owner uses these fields.
    var top: UnsafeMutablePointer<Frame.Fields>
    var last: UnsafeMutablePointer<Frame.Fields>
    /// The block that contains the record. Set before the record is published.
    var block: UnsafeMutablePointer<ThreadBlock.Storage>?
    /// The owner's identity.
    let identity: Atomic<ThreadIdentity>
    /// The system's number for the owner. Relaxed is enough, because only reports use this number.
    let systemNumber: Atomic<UInt32>
    /// The owner's state in the search for a cycle. Guarded by the waits' lock.
    var search: Waits.Search
    /// `isWoken` says whether the owner has been woken through its key but has not run since.
    /// `isPassedOver` says whether a search has skipped the owner because of `isWoken`. Guarded by
    /// the waits' lock.
    var isWoken: Bool
    var isPassedOver: Bool
    /// The owner's wait. Guarded by the waits' lock.
    var wait: Wait
    /// The time when the wait began. Guarded by the waits' lock.
    var waitsSince: UInt64
    /// Slots for the next multicasts that the owner creates. Only the owner uses this field.
    var vacant: VacantSlots
    /// The invocations that the owner has deferred, grouped by multicast (see `Deferrals`). The
    /// owner changes this field under the waits' lock.
    var deferrals: UnsafeMutableRawPointer?
    /// The owner's adds that are replaying kept invocations, innermost first (see `Replay`). The
    /// owner changes this field under the waits' lock.
    var replays: UnsafeMutableRawPointer?
    /// The notified name and the frame of the innermost invocation that is calling observers of a
    /// prefix; nil if there is no such invocation. Only the owner uses this field.
    var named: (name: UnsafePointer<CChar>, frame: UnsafeMutablePointer<Frame.Fields>)?
  }

  /// The maximum number of nested invocations and runs in a thread.
  static let frameLimit: UInt32 = 256
  /// There is one more frame, so that even the innermost call can look up a name.
  private static let frameCount = frameLimit + 1
  /// The size of the buffer into which a thread's outermost run of a queue copies calls.
  static let batchSize = 512
  private static let batchOffset = 192
  private static let headerSize = batchOffset + batchSize
  /// The size of a record, rounded up to a multiple of 1024. As a result, the outermost frame of
  /// each of 64 adjacent records is in a single cache line, and in the same page as the record's
  /// header.
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

  /// The calling thread's record. The caller knows that this thread has a record.
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

  /// Initializes a record that is all zeros, before other threads can see its owner.
  func reset() {
    precondition(MemoryLayout<Storage>.size <= Self.batchOffset)  // evaluated by the compiler
    storage.pointee.top = frame(0).fields
    storage.pointee.last = frame(Self.frameLimit).fields
    wait = .nothing
  }

  /// Ends the calling thread's ownership of the record.
  @inline(never) func giveBack() {
    giveBackSlots()  //~ vacant_slots_not_given_back
    ThreadBlock(storage.pointee.block.unsafelyUnwrapped).giveBack(self)
  }

  func giveBackSlots() { storage.pointee.vacant.giveBack(to: .multicasts) }

  func frame(_ depth: UInt32) -> Frame {
    let frames = UnsafeMutableRawPointer(storage) + Self.headerSize
    return Frame(frames.assumingMemoryBound(to: Frame.Fields.self) + Int(depth))
  }

  /// The buffer for copied calls. Only the owner uses it.
  var batch: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(storage) + Self.batchOffset
  }

  // MARK: - Fields

  var number: UInt32 { storage.pointee.number }

  var top: Frame { Frame(storage.pointee.top) }

  /// The owner's identity, or none. If the calling thread is not the owner, the identity may change
  /// at any moment. The setter's release pairs with the getter's acquire, so that a thread that
  /// reads an identity finds the record initialized.
  var identity: ThreadIdentity {
    get { storage.pointee.identity.load(ordering: .acquiring) }  // order: record
    // order: record
    nonmutating set { storage.pointee.identity.store(newValue, ordering: .releasing) }
  }

  /// The owner's wait, guarded by the waits' lock. If the record has no owner, the stored wait is
  /// meaningless, because the record may be all zeros.
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

  /// Reserves the next frame for an invocation or run, or returns nil if too many of them are
  /// nested. The frame is in use once it is published.
  func push() -> Frame? {
    let frame = storage.pointee.top
    if frame == storage.pointee.last { return nil }
    storage.pointee.top = frame + 1
    checkPush(Frame(frame))
    return Frame(frame)
  }

  func pop(_ frame: Frame) {
    checkPop(frame)
    frame.withdraw()  //~ frame_not_withdrawn
    storage.pointee.top = frame.fields  //~ frame_not_popped
  }

  /// Whether another invocation can be nested.
  var hasRoom: Bool { storage.pointee.top != storage.pointee.last }

  /// Whether this thread is inside an invocation or a run.
  var isInside: Bool { top != frame(0) }

  /// The innermost frame in which this thread is calling a delegate with a matching registration,
  /// or nil if there is none.
  func innermostCall(where matches: (Token) -> Bool) -> Frame? {
    var frame = storage.pointee.top
    while frame != self.frame(0).fields {
      frame -= 1
      let token = Frame(frame).hazard
      if token.kind == .registration && matches(token) { return Frame(frame) }
    }
    return nil
  }

  /// The notified name if this frame's invocation is calling observers of a prefix; otherwise nil.
  func name(in frame: Frame) -> UnsafePointer<CChar>? {
    guard let named = storage.pointee.named, named.frame == frame.fields else { return nil }
    return named.name
  }

  /// Visits the registrations whose delegates this thread is calling, from the outermost call to
  /// the innermost.
  func forEachCall(_ body: (Token) -> Void) {
    var frame = self.frame(0).fields
    while frame != storage.pointee.top {
      let token = Frame(frame).hazard
      if token.kind == .registration { body(token) }
      frame += 1
    }
  }

  // MARK: - For all threads

  /// The outermost frame in use that matches.
  ///
  /// Frames are read up to the first frame that is not in use. As long as a call is running, its
  /// frame and all frames below it are in use. So a reader misses a frame only if the frame's
  /// invocation began after the reader's heavy fence. Such an invocation sees the changes that the
  /// reader made before the fence.
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

  func retains(_ payload: UInt) -> Bool {
    firstFrame { frame, _, _ in frame.payload == payload } != nil
  }

  func isCalling(_ token: Token) -> Bool {
    firstFrame { _, _, hazard in hazard == token } != nil
  }

  /// Whether an invocation, run or lookup with this target is on this thread's stack.
  func isInside(_ target: Target) -> Bool {
    firstFrame { _, other, _ in other == target } != nil
  }

  /// Whether a frame for `target` publishes a matching list.
  func isInside(_ target: Target, where matches: (_ list: UInt) -> Bool) -> Bool {
    firstFrame { frame, other, _ in other == target && frame.list != 0 && matches(frame.list) }
      != nil
  }

  /// Empties the frames of a thread that has ended inside a call. In the child of a fork, empties
  /// the frames of a thread that exists only in the parent.
  ///
  /// - Parameters:
  ///   - release: Called under the waits' lock for each payload that a frame has retained. Without
  ///     this lock, another thread could fork while no frame contains the payload's reference, and
  ///     the child would leak the payload.
  ///   - willLeave: Called for each frame, with no lock held. The frame is still in use, so
  ///     `willLeave` may invoke multicasts.
  ///   - didLeave: Called for each frame after it has been withdrawn.
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

/// The stack address of the function that pushed the frame. The struct is empty in builds without
/// checks.
struct StackMark {
  #if MULTICAST_INTERNAL_CHECKS
    var address: UInt = 0
  #endif
}

/// Checks made by a record's owner. The frames below the top must be in use by calls that are still
/// on the stack. The top frame and the frames above it must not be in use.
extension ThreadRecord {
  /// Called after a frame has been pushed and before anything is written to it.
  func checkPush(_ frame: Frame, _ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      let here = UInt(shims_stack_address())
      checkStack(below: frame, here, check)
      checkFrames(from: frame, check)
      frame.fields.pointee.stackMark.address = here
    #endif
  }

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

  /// Called before a lookup uses the first free frame without pushing it.
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
