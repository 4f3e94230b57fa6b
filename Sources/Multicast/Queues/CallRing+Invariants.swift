import MulticastHeader
import Synchronization

#if MULTICAST_INTERNAL_CHECKS
  /// The queue's lock is held.
  extension CallRing {
    func check(_ check: Check) {
      // The head may be open. A call that is taken out meanwhile can still be read: nothing is
      // appended under this lock, and a removal of its delegate takes the lock first.
      let head = self.head.position
      let length = tail &- head
      check.that(head <= tail && length <= mask &+ 1, "calls are within the ring", head, tail)
      check.that(knownHead <= head, "the head only rises", knownHead, head)
      check.that(gaps <= length, "gaps are within the ring", gaps, length)
      if length == gaps { return }
      let count = length &- gaps
      if UInt64(Check.reach()) < length { return }

      var (calls, linked) = (UInt64(0), UInt64(0))
      for position in head..<tail {
        if !call(position).pointee.token.isNone {
          calls &+= 1
          checkCall(position, check)
          if call(position).pointee.details.pointee.lastCall == position {
            linked &+= countLinked(to: position, from: head, check)
          }
        }
      }
      check.that(calls == count, "the calls that wait are counted", calls, count)
      check.that(
        linked == count, "each call is found from the newest of its delegate", linked, count)
    }

    /// How many calls of a delegate are linked from its newest one.
    private func countLinked(
      to newest: UInt64, from head: UInt64, _ check: Check
    ) -> UInt64 {
      let details = call(newest).pointee.details
      var linked: UInt64 = 0
      var position = newest
      while position >= head {
        check.that(
          call(position).pointee.details == details, "linked calls are of one delegate", position,
          newest)
        check.that(
          call(position).pointee.token == call(newest).pointee.token,
          "linked calls are of one registration", position, newest)
        check.that(call(position).pointee.previous < position, "calls are linked to older ones")
        linked &+= 1
        position = call(position).pointee.previous
      }
      let hasOne = details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) != 0
      check.that(
        !hasOne || linked == 1, "of a delegate with ONCE or LATEST one call waits at most", linked)
      return linked
    }

    private func checkCall(_ position: UInt64, _ check: Check) {
      let call = self.call(position).pointee
      let registration = Registration(index: call.token.index)
      check.that(
        registration.token == call.token, "a waiting call has a registration", call.token.rawValue,
        registration.token.rawValue)
      check.that(
        registration.details == call.details, "a call has the details of its registration",
        position)
      check.that(
        call.details.pointee.lastCall >= position && call.details.pointee.lastCall < tail,
        "a registration knows its newest call", position, call.details.pointee.lastCall)
      check.that(
        call.size <= UInt32(WaitingCall.inlineSize) || call.size == WaitingCall.shared,
        "a payload is small, or shared", call.size)
      guard let payload = call.sharedPayload else { return }
      let (references, calls) = (payload.referenceCount, countCalls(with: payload, from: position))
      check.that(references >= calls, "a call retains its payload", references, calls)
    }

    /// How many of the next calls have this payload. Calls of one invocation are neighbours.
    private func countCalls(with payload: Payload, from first: UInt64) -> UInt64 {
      var (calls, position) = (UInt64(0), first)
      while position != tail && position &- first < 16 {
        let call = self.call(position).pointee
        if !call.token.isNone, call.sharedPayload?.header == payload.header { calls &+= 1 }
        position &+= 1
      }
      return calls
    }
  }
#endif
