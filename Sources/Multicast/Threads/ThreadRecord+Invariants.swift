import MulticastShims
import Synchronization

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
