import MulticastShims
import Synchronization

/// Where the stack was when a frame began; nothing in builds without checks.
struct StackMark {
  #if MULTICAST_INTERNAL_CHECKS
    var address: UInt = 0
  #endif
}

/// For the owner of a record: frames below the top are in use, and of calls that are still on the
/// stack; those from the top on are not.
extension ThreadRecord {
  /// A frame has been taken, and nothing is written to it yet.
  @inline(__always)
  func checkPush(
    _ frame: UnsafeMutablePointer<Frame>, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      let here = UInt(shims_stack_address())
      checkStack(below: frame, here, check)
      checkFrames(from: frame, check)
      frame.pointee.stack.address = here
    #endif
  }

  /// A frame is about to be given up.
  @inline(__always)
  func checkPop(
    _ frame: UnsafeMutablePointer<Frame>, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      check.that(
        storage.pointee.top == frame + 1,
        "who leaves an invocation left none inside of it by longjmp or by an exception",
        depth(of: frame + 1), depth(of: storage.pointee.top))
      checkStack(below: frame, UInt(shims_stack_address()), check)
      let delegate = frame.pointee.delegate.load(ordering: .relaxed)
      check.that(delegate == 0, "who leaves an invocation is in no call", delegate)
      check.that(
        frame.pointee.payload.load(ordering: .relaxed) == 0,
        "who leaves an invocation has let go of its payload")
      checkFrames(from: frame + 1, check)
    #endif
  }

  /// The frame behind the innermost invocation is about to be used, without being taken.
  @inline(__always)
  func checkTop(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      checkStack(below: storage.pointee.top, UInt(shims_stack_address()), check)
      checkFrames(from: storage.pointee.top, check)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    private func depth(of frame: UnsafeMutablePointer<Frame>) -> UInt64 {
      UInt64(truncatingIfNeeded: frame - self.frame(0))
    }

    /// - Parameter here: Where the stack is in the function that uses the frame, not in this one.
    private func checkStack(
      below frame: UnsafeMutablePointer<Frame>, _ here: UInt, _ check: Check
    ) {
      CallerCode.checkIsSupported(check)
      check.that(storage.pointee.taken.load(ordering: .relaxed) == 1, "a thread owns its record")
      check.that(
        frame >= self.frame(0) && frame <= storage.pointee.last, "the top is within the frames",
        depth(of: frame), depth(of: storage.pointee.last))
      if frame == self.frame(0) { return }
      let outer = frame - 1
      check.that(
        outer.pointee.multicast.load(ordering: .relaxed) != 0, "a frame below the top is in use",
        depth(of: outer))
      check.that(
        here < outer.pointee.stack.address,
        "no delegate or visitor is left by longjmp or by an exception", UInt64(here),
        UInt64(outer.pointee.stack.address))
    }

    private func checkFrames(from first: UnsafeMutablePointer<Frame>, _ check: Check) {
      var frame = first
      let end = min(first + 4, storage.pointee.last + 1)
      while frame < end {
        check.that(
          frame.pointee.multicast.load(ordering: .relaxed) == 0,
          "a frame from the top on is not in use", depth(of: frame))
        frame += 1
      }
    }
  #endif
}
