import Dispatch
import MulticastSwift
import Testing

@Suite struct RegistrationTests {
  let diary = Diary()

  @Test func aRegistrationIsANumber() {
    let signal = Signal<Int>()
    let first = signal.add { _ in }
    let second = signal.add { _ in }
    #expect(Set([first, second, first]).count == 2)
    #expect(first.isValid && second.isValid)
    #expect(first.remove() == .ended)
    #expect(first.remove() == .notFound)
    #expect(!first.isValid && second.isValid)
  }

  @Test func removalWaitsForTheCallAndTimesOut() {
    let (isInCall, mayReturn, hasReturned) = (Gate(), Gate(), Gate())
    let signal = Signal<Int>()
    let registration = signal.add { [diary] _ in
      isInCall.open()
      mayReturn.wait()
      diary.write("returned")
    }
    DispatchQueue.global().async {
      signal.invoke(0)
      hasReturned.open()
    }
    isInCall.wait()
    #expect(registration.remove(within: .milliseconds(1)) == .timedOut)
    #expect(registration.remove(within: .zero) == .timedOut)
    #expect(registration.remove(within: .seconds(-1)) == .timedOut)
    #expect(diary.read() == [])
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { mayReturn.open() }
    // The first removal has removed the delegate, but a call to it is still running, so this
    // removal waits.
    #expect(registration.remove(within: .seconds(Int64.max)) == .notFound)
    #expect(diary.read() == ["returned"])
    hasReturned.wait()
  }

  @Test func aScopedRegistrationRemovesInDeinit() {
    let signal = Signal<String>()
    var scoped: ScopedRegistration? = signal.add { [diary] in diary.write($0) }.scoped
    signal.invoke("x")
    #expect(scoped!.registration.isValid)
    scoped = nil
    signal.invoke("y")
    #expect(diary.read() == ["x"])
    #expect(signal.isEmpty)
  }

  @Test func aScopedRegistrationDoesNotWaitInDeinit() {
    let (isInCall, mayReturn, hasReturned) = (Gate(), Gate(), Gate())
    let signal = Signal<Int>()
    var scoped: ScopedRegistration? =
      signal.add { _ in
        isInCall.open()
        mayReturn.wait()
      }.scoped
    DispatchQueue.global().async {
      signal.invoke(0)
      hasReturned.open()
    }
    isInCall.wait()
    // This removal must not wait for the call, which returns only after the removal. If the removal
    // waited, the test would hang.
    scoped = nil
    #expect(signal.isEmpty && scoped == nil)
    mayReturn.open()
    hasReturned.wait()
  }

  @Test func aScopedRegistrationCanBeRemovedEarlier() {
    let signal = Signal<Int>()
    let scoped = signal.add { _ in }.scoped
    #expect(scoped.remove() == .ended)
    #expect(scoped.remove(within: .zero) == .notFound)
  }
}
