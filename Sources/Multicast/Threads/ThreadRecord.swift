import MulticastShims
import Synchronization

/// One invocation that runs: what a thread tells all others, by plain stores.
struct Frame: ~Copyable {
  /// The slot of the multicast that is being invoked; or that of the queue that is being run, plus
  /// 1, or of the broadcaster whose names are being looked up, plus 2. 0 ends the stack of frames.
  let multicast: Atomic<UInt>
  /// The ticket counter from before this frame was there: changes with a higher ticket may not
  /// have been seen by this invocation.
  let epoch: Atomic<UInt64>
  /// The token of the delegate whose function is being called, or 0.
  let delegate: Atomic<UInt64>
  /// The invocation list that is being read; 0 until it is known which.
  let list: Atomic<UInt>
  /// A copy of its payload that it holds, or 0: the owner's to let go of, if it lives.
  let payload: Atomic<UInt>
  var stack: StackMark

  // Slots are aligned.
  static func isInvocation(_ multicast: UInt) -> Bool { multicast & 3 == 0 }
  static func isRun(_ multicast: UInt) -> Bool { multicast & 3 == 1 }
}

/// What a thread sleeps for.
struct Awaited {
  /// The token whose calls have to return, or 0.
  var token: UInt64 = 0
  /// Holds the identity of the thread that has to do something, or 0.
  var thread: UnsafeMutablePointer<Atomic<UInt64>>? = nil
  /// That thread, or whoever takes its place, has to run a queue; not to end what it is in.
  var isForRoom = false

  /// It cannot be told who has to do something.
  var isAnybody = false

  var isNothing: Bool { token == 0 && thread == nil && !isAnybody }
}

/// What a thread that invokes owns: a stack of frames that every thread can read.
///
/// Records are never freed; one whose thread has ended serves the next that comes.
struct ThreadRecord {
  struct Storage: ~Copyable {
    /// From 1; what the multicasts that this thread alone invokes know it by.
    var number: UInt32
    /// The first frame that is not in use; and the one that never is, but for looking up names. The
    /// owner's alone.
    var top: UnsafeMutablePointer<Frame>
    var last: UnsafeMutablePointer<Frame>
    /// 1 while a thread owns the record.
    let taken: Atomic<UInt32>
    /// The thread's own among all that ever had a record; 0 while there is none.
    let identity: Atomic<UInt64>
    /// Guarded by the lock of calls: how far the search for cycles has come with this thread.
    var search: Search
    /// Guarded by the lock of calls.
    var awaited: Awaited
    /// The next record of the registry; fixed before the record is published.
    var next: UnsafeMutablePointer<Storage>?
  }

  /// Stages of the search for cycles of waits.
  enum Search: UInt8 { case unknown, reached, followed }

  /// Nested invocations and runs on one thread.
  static let frameLimit: UInt32 = 256
  /// One more, so that names can be looked up in the innermost call.
  private static let frameCount = frameLimit + 1
  private static let headerSize = 128
  private static let size = headerSize + Int(frameCount) * MemoryLayout<Frame>.stride
  private static let alignment = 128

  let storage: UnsafeMutablePointer<Storage>

  @inline(__always) init(_ storage: UnsafeMutablePointer<Storage>) { self.storage = storage }

  /// The calling thread's, or nil where it has never invoked.
  @inline(__always) static var current: ThreadRecord? {
    guard let record = shims_get_thread_record() else { return nil }
    return ThreadRecord(record.assumingMemoryBound(to: Storage.self))
  }

  static func allocate() -> ThreadRecord? {
    guard let block = Allocator.allocateZeroed(size: size, alignment: alignment) else {
      return nil
    }
    let record = ThreadRecord(block.bindMemory(to: Storage.self, capacity: 1))
    record.storage.pointee.top = record.frame(0)
    record.storage.pointee.last = record.frame(frameLimit)
    return record
  }

  /// Takes back a record that was never published.
  func deallocate() {
    Allocator.deallocate(storage, size: Self.size, alignment: Self.alignment)
  }

  @inline(__always) func frame(_ depth: UInt32) -> UnsafeMutablePointer<Frame> {
    let frames = UnsafeMutableRawPointer(storage) + Self.headerSize
    return frames.assumingMemoryBound(to: Frame.self) + Int(depth)
  }

  /// The frame of an invocation, or of a run, that begins; nil where they are nested too deep. It
  /// is in use once something is written to it that is not 0.
  @inline(__always) func push() -> UnsafeMutablePointer<Frame>? {
    let frame = storage.pointee.top
    if frame == storage.pointee.last { return nil }
    storage.pointee.top = frame + 1
    checkPush(frame)
    return frame
  }

  /// Ends the use of the innermost frame, which was pushed, and of no other.
  @inline(__always) func pop(_ frame: UnsafeMutablePointer<Frame>) {
    checkPop(frame)
    // Release: a writer that does not see the frame any more may free what it led to.
    frame.pointee.multicast.store(0, ordering: .releasing)
    storage.pointee.top = frame
  }

  /// For the owner: whether it is inside of an invocation or a run.
  var isInside: Bool { storage.pointee.top != frame(0) }

  @inline(__always) static func == (a: ThreadRecord, b: ThreadRecord?) -> Bool {
    a.storage == b?.storage
  }

  /// Relaxed: what it says of another thread is old news anyway.
  var identity: UInt64 { storage.pointee.identity.load(ordering: .relaxed) }

  /// For the owner: the delegate whose call it is in, the innermost where calls nest, or 0.
  var innermostCall: UInt64 {
    var frame = storage.pointee.top
    while frame != self.frame(0) {
      frame -= 1
      let token = frame.pointee.delegate.load(ordering: .relaxed)
      if token != 0 { return token }
    }
    return 0
  }

  /// Whether this is a thread that somebody waits for.
  func concerns(_ awaited: Awaited) -> Bool {
    if let thread = awaited.thread {
      // Relaxed: a guess at who it is going to be.
      let identity = thread.pointee.load(ordering: .relaxed)
      return identity != 0 && identity == self.identity
    }
    return isCalling(awaited.token)
  }

  /// Whether a call of this delegate is on this thread's stack.
  ///
  /// Frames are read from the bottom, up to the first that is not in use: the frame of a call that
  /// has not returned is in use, and so are all below it, for as long as it has not. What is
  /// missed began after the reader's fence and so saw what the reader changed before it.
  func isCalling(_ token: UInt64) -> Bool {
    var depth: UInt32 = 0
    while let call = call(at: depth) {
      if call.token == token { return true }
      depth &+= 1
    }
    return false
  }

  /// The invocation at a depth of the stack, and what it calls; nil where there is none.
  @inline(__always)
  func call(at depth: UInt32) -> (multicast: UInt, token: UInt64)? {
    guard depth < Self.frameCount else { return nil }
    let frame = self.frame(depth)
    // Acquire, both: pair with the releases of the invocation that leaves the frame or the call,
    // so that whatever the delegate did happened before what the reader does next.
    let multicast = frame.pointee.multicast.load(ordering: .acquiring)
    if multicast == 0 { return nil }
    return (multicast, frame.pointee.delegate.load(ordering: .acquiring))
  }

  /// Whether any invocation of this multicast is on this thread's stack; or a run of a queue, or a
  /// look-up, as frames name them.
  func isInvoking(_ multicast: UInt) -> Bool {
    var depth: UInt32 = 0
    while let call = call(at: depth) {
      if call.multicast == multicast { return true }
      depth &+= 1
    }
    return false
  }

  /// Whether an invocation on this thread's stack may be reading a list that was retired.
  ///
  /// Those that began after its ticket do not; of the others, those that have told which list they
  /// read do not if it is another. A frame may pass on to a next invocation while it is looked at:
  /// that one began after the heavy fence and does not find the retired list, whatever is seen.
  ///
  func isReading(_ list: UInt, of multicast: UInt, retiredWith ticket: UInt64) -> Bool {
    var depth: UInt32 = 0
    while depth < Self.frameCount {
      let frame = self.frame(depth)
      let invoked = frame.pointee.multicast.load(ordering: .acquiring)  // pairs as above
      if invoked == 0 { return false }
      if invoked == multicast && frame.pointee.epoch.load(ordering: .relaxed) < ticket {
        let known = frame.pointee.list.load(ordering: .relaxed)
        if known == 0 || known == list { return true }
      }
      depth &+= 1
    }
    return false
  }

  /// Empties the stack of a thread that is gone: it ended inside a call, or was the parent's.
  ///
  /// - Parameter hasLeft: Given the multicast of each frame, which may not be one, and the payload
  ///   that it held.
  func clear(_ hasLeft: (_ multicast: UInt, _ payload: UInt) -> Void) {
    var depth: UInt32 = 0
    while call(at: depth) != nil { depth &+= 1 }
    storage.pointee.top = frame(0)
    while depth > 0 {
      depth &-= 1
      let frame = self.frame(depth)
      let multicast = frame.pointee.multicast.load(ordering: .relaxed)
      let payload = frame.pointee.payload.load(ordering: .relaxed)
      frame.pointee.payload.store(0, ordering: .relaxed)
      frame.pointee.delegate.store(0, ordering: .releasing)
      frame.pointee.multicast.store(0, ordering: .releasing)
      hasLeft(multicast, payload)
    }
  }
}
