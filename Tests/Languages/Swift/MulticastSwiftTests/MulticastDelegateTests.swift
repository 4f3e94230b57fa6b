import Dispatch
import MulticastSwift
import Testing

@Suite struct MulticastDelegateTests {
  let diary = Diary()

  func ear(_ name: String) -> Ear { Ear(name, diary) }

  @Test func callsByPriorityThenInOrderOfAddition() {
    let multicast = MulticastDelegate<any Listener>()
    let ears = ["a", "b", "c", "d"].map(ear)
    multicast.add(ears[0], priority: -1)
    multicast.add(ears[1])
    multicast.add(ears[2], priority: 5)
    multicast.add(ears[3])
    #expect(multicast.invoke { $0.hear("x") } == 4)
    #expect(diary.read() == ["c x", "b x", "d x", "a x"])
    #expect(multicast.count == 4 && !multicast.isEmpty)
    #expect(multicast.delegates.map { "\($0)" } == ["c", "b", "d", "a"])
    withExtendedLifetime(ears) {}
  }

  @Test func delegatesThatHaveEndedAreNotCalledAndNotCounted() {
    let multicast = MulticastDelegate<any Listener>()
    let first = ear("first")
    var second: Ear? = ear("second")
    multicast.add(first)
    let registration = multicast.add(second!)
    second = nil
    #expect(multicast.count == 1)
    #expect(!registration.isValid)
    #expect(multicast.invoke { $0.hear("x") } == 1)
    #expect(diary.read() == ["first x"])
  }

  @Test func pruneRemovesWhatHasEnded() {
    let multicast = MulticastDelegate<any Listener>()
    for index in 0..<10 { multicast.add(ear("\(index)")) }
    #expect(multicast.prune() == 10)
    #expect(multicast.prune() == 0)
    #expect(multicast.isEmpty)
  }

  /// A new object must not be mistaken for a destroyed object that had the same address.
  @Test func newObjectsAreNotMistakenForOldOnes() {
    let multicast = MulticastDelegate<any Listener>()
    for _ in 0..<100 { multicast.add(ear("old")) }
    let ears = (0..<200).map { _ in ear("new") }
    #expect(ears.allSatisfy { !multicast.contains($0) })
    #expect(multicast.invoke { $0.hear("x") } == 0)
    #expect(diary.read() == [])
  }

  @Test func strongDelegatesStay() {
    let gone = Diary()
    let multicast = MulticastDelegate<any Listener>(reference: .strong)
    let registration = multicast.add(
      Ear("a", diary, onDeinit: { gone.write($0.description) }))
    #expect(multicast.invoke { $0.hear("x") } == 1)
    #expect(diary.read() == ["a x"])
    #expect(gone.read() == [])
    #expect(registration.remove() == .ended)
    #expect(gone.read() == ["a"])
    #expect(multicast.isEmpty)
  }

  @Test func strongDelegatesMayBeValues() {
    let multicast = MulticastDelegate<any OpenListener>(reference: .strong)
    let registration = multicast.add(Note(diary: diary))
    multicast.add(ear("a"))
    #expect(multicast.invoke { $0.hear("x") } == 2)
    #expect(diary.read() == ["note x", "a x"])
    #expect(!multicast.remove(Note(diary: diary)) && !multicast.contains(Note(diary: diary)))
    #expect(registration.remove() == .ended)
    #expect(multicast.count == 1)

    let numbers = MulticastDelegate<Int>([1, 2, 3], reference: .strong)
    #expect(numbers.delegates == [1, 2, 3])
    let texts = MulticastDelegate<String>(["a", "b"], reference: .strong)
    #expect(texts.delegates == ["a", "b"])
    let optional = MulticastDelegate<Ear?>([nil, ear("a")], reference: .strong)
    #expect(optional.delegates.map { $0?.description } == [nil, "a"])
    let empty = MulticastDelegate<Void>([(), ()], reference: .strong)
    #expect(empty.count == 2 && empty.delegates.count == 2)
  }

  @Test func weakDelegatesHaveToBeObjects() async throws {
    let result = try await #require(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      MulticastDelegate<any OpenListener>().add(Note(diary: Diary()))
    }
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(message.contains("MulticastDelegate<OpenListener> has to be an object"))
    #expect(message.contains("Note is a value"))
  }

  @Test func anInvocationThatIsNestedTooDeepEndsTheProgram() async throws {
    let result = try await #require(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let ear = Ear("a", Diary())
      let multicast = MulticastDelegate<Ear>([ear])
      func nest(_ depth: Int) { if depth < 300 { multicast.invoke { _ in nest(depth + 1) } } }
      nest(0)
    }
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(message.contains("nested more than 256 deep"))
  }

  /// An optional object and the object itself have the same representation in memory, but are
  /// different delegates.
  @Test func anOptionalThatConformsIsADelegateOfItsOwn() {
    let named = NamedObject()
    for reference in [MulticastDelegate<any Named>.Reference.weak, .strong] {
      let multicast = MulticastDelegate<any Named>(reference: reference)
      let optional: any Named = Optional(named)
      multicast.add(named)
      multicast.add(optional)
      var names: [String] = []
      multicast.invoke { names.append($0.name) }
      #expect(names == ["object", "optional"])
      #expect(multicast.remove(optional) && !multicast.contains(optional))
      #expect(multicast.delegates.map(\.name) == ["object"])
    }
    let optional: any Named = Optional(named)
    let nested = MulticastDelegate<(any Named)?>([named, optional])
    #expect(nested.delegates.map { $0!.name } == ["object", "optional"])
  }

  @Test func onceIsCalledOnce() {
    let multicast = MulticastDelegate<Ear>()
    let (a, b) = (ear("a"), ear("b"))
    let registration = multicast.add(a, once: true)
    multicast.add(b)
    multicast.invoke {
      $0.hear("x")
      if $0 === a { #expect(!registration.isValid) }
    }
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["a x", "b x", "b y"])
    withExtendedLifetime((a, b)) {}
  }

  /// Delegates whose objects no longer exist must be removed even if the multicast is never
  /// invoked.
  @Test func endedDelegatesDoNotPileUp() {
    let multicast = MulticastDelegate<any Listener>()
    let kept = (0..<100).map { _ in ear("kept") }
    for ear in kept { multicast.add(ear) }
    let registrations = (0..<10_000).map { _ in multicast.add(ear("ended")) }
    #expect(registrations.count { $0.isValid } <= 200)
    #expect(multicast.count == 100)
    withExtendedLifetime(kept) {}
  }

  @Test func takesProtocolsOfAllKinds() {
    let (a, b) = (ear("a"), SharpEar("b", diary))
    func check<P>(_ type: P.Type, _ delegates: [P], _ hear: (P) -> Void, line: Int = #line) {
      for reference in [MulticastDelegate<P>.Reference.weak, .strong] {
        let multicast = MulticastDelegate<P>(delegates, reference: reference)
        #expect(multicast.invoke(hear) == 2, "line \(line)")
        #expect(diary.read() == ["a x", "b sharply x"], "line \(line)")
        #expect(multicast.contains(delegates[1]) && multicast.remove(delegates[1]), "line \(line)")
        #expect(!multicast.contains(delegates[1]) && multicast.count == 1, "line \(line)")
        multicast.delegates.forEach(hear)
        #expect(diary.read() == ["a x"], "line \(line)")
      }
    }
    check((any Listener).self, [a, b]) { $0.hear("x") }
    check((any OpenListener).self, [a, b]) { $0.hear("x") }
    check((any Listener & OpenListener).self, [a, b]) { ($0 as any Listener).hear("x") }
    check((any Listener & CustomStringConvertible).self, [a, b]) { $0.hear("x") }
    check((any OpenListener & CustomStringConvertible).self, [a, b]) { $0.hear("x") }
    check((Ear & CustomStringConvertible).self, [a, b]) { $0.hear("x") }
    check(Ear.self, [a, b]) { $0.hear("x") }
    check(AnyObject.self, [a, b]) { ($0 as! Ear).hear("x") }
    check(Any.self, [a, b]) { ($0 as! Ear).hear("x") }
    check(Optional<Ear>.self, [a, b]) { $0!.hear("x") }
    check(Optional<any OpenListener>.self, [a, b]) { $0!.hear("x") }
  }

  @Test func removesTheFirstRegistrationOnly() {
    let multicast = MulticastDelegate<any Listener>()
    let (a, b) = (ear("a"), ear("b"))
    for delegate in [a, b, a, a] { multicast.add(delegate) }
    #expect(multicast.remove(a))
    multicast.invoke { $0.hear("x") }
    #expect(diary.read() == ["b x", "a x", "a x"])
    #expect(multicast.removeEvery(a))
    #expect(!multicast.removeEvery(a) && !multicast.remove(a))
    multicast.invoke { $0.hear("x") }
    #expect(diary.read() == ["b x"])
  }

  @Test func aUniqueDelegateMovesToTheEnd() {
    let multicast = MulticastDelegate<any Listener>()
    let (a, b) = (ear("a"), ear("b"))
    let first = multicast.add(a)
    multicast.add(b)
    let second = multicast.add(a, isUnique: true)
    #expect(first != second && !first.isValid && second.isValid)
    multicast.invoke { $0.hear("x") }
    #expect(diary.read() == ["b x", "a x"])
  }

  @Test func removesByPosition() {
    let multicast = MulticastDelegate<any Listener>()
    let (a, b) = (ear("a"), ear("b"))
    multicast.add(ear("gone"))
    multicast.add(a)
    multicast.add(b)
    #expect(multicast.remove(at: 0))
    #expect(!multicast.remove(at: 1) && !multicast.remove(at: -1))
    #expect(multicast.delegates.map { "\($0)" } == ["b"])
    withExtendedLifetime((a, b)) {}
  }

  @Test func removesAll() {
    let multicast = MulticastDelegate<any Listener>()
    let ears = ["a", "b", "c"].map(ear)
    let registrations = ears.map { multicast.add($0) }
    #expect(multicast.removeAll() == 3)
    #expect(registrations.allSatisfy { !$0.isValid })
    #expect(multicast.invoke { $0.hear("x") } == 0)
    withExtendedLifetime(ears) {}
  }

  @Test func operatorsAddAndRemove() {
    let multicast = MulticastDelegate<any Listener>()
    let (a, b) = (ear("a"), ear("b"))
    multicast += a
    multicast += b
    multicast.invoke { $0.hear("x") }
    multicast -= a
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["a x", "b x", "b y"])
    withExtendedLifetime((a, b)) {}
  }

  @Test func anErrorEndsTheInvocationAndHasItsType() {
    enum Refusal: Error { case by(String) }
    let multicast = MulticastDelegate<Ear>()
    let ears = ["a", "b", "c"].map(ear)
    for delegate in ears { multicast.add(delegate) }
    do throws(Refusal) {
      try multicast.invoke { delegate throws(Refusal) in
        delegate.hear("x")
        if delegate.description == "b" { throw .by(delegate.description) }
      }
      Issue.record("nothing was thrown")
    } catch {
      switch error {
      case .by(let name): #expect(name == "b")
      }
    }
    #expect(diary.read() == ["a x", "b x"])
    withExtendedLifetime(ears) {}
  }

  @Test func theFirstAnswerEndsTheQuestion() throws {
    struct Refusal: Error {}
    let multicast = MulticastDelegate<Ear>()
    let ears = ["a", "bb", "cc"].map(ear)
    for delegate in ears { multicast.add(delegate) }
    let answer = multicast.first { delegate -> String? in
      delegate.hear("x")
      return delegate.description.count == 2 ? delegate.description : nil
    }
    #expect(answer == "bb")
    #expect(diary.read() == ["a x", "bb x"])
    #expect(multicast.first { _ in nil as Int? } == nil)
    #expect(throws: Refusal.self) { try multicast.first { _ -> Int? in throw Refusal() } }
    withExtendedLifetime(ears) {}
  }

  @Test func changesDuringAnInvocation() {
    let multicast = MulticastDelegate<Ear>()
    let (a, b, c) = (ear("a"), ear("b"), ear("c"))
    multicast.add(a)
    multicast.add(b)
    multicast.invoke {
      $0.hear("x")
      if $0 === a {
        #expect(multicast.remove(b))
        multicast.add(c)
      }
    }
    #expect(diary.read() == ["a x"])
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["a y", "c y"])
  }

  @Test func aDelegateMayRemoveItself() {
    let multicast = MulticastDelegate<Ear>()
    let a = ear("a")
    let registration = multicast.add(a)
    #expect(Registration.current == nil)
    multicast.invoke { _ in
      #expect(Registration.current == registration)
      #expect(Registration.current?.remove() == .pending)
      #expect(!registration.isValid)
    }
    #expect(multicast.invoke { _ in } == 0)
    #expect(registration.remove() == .notFound)
    withExtendedLifetime(a) {}
  }

  @Test func aDelegateMayGiveUpItsLastReferenceInItsCall() {
    let gone = Diary()
    nonisolated(unsafe) var owner: Ear? = Ear("a", diary, onDeinit: { _ in gone.write("gone") })
    let multicast = MulticastDelegate<Ear>()
    multicast.add(owner!)
    multicast.invoke { delegate in
      owner = nil
      #expect(gone.read() == [])
      delegate.hear("x")
    }
    #expect(diary.read() == ["a x"])
    #expect(gone.read() == ["gone"])
    #expect(multicast.isEmpty)
  }

  @Test func aDelegateMayRemoveItselfInDeinit() {
    let multicast = MulticastDelegate<Ear>()
    var a: Ear? = Ear(
      "a", diary,
      onDeinit: {
        #expect(multicast.contains($0))
        #expect(multicast.remove($0) && !multicast.remove($0))
      })
    let registration = multicast.add(a!)
    a = nil
    #expect(!registration.isValid)
    #expect(multicast.invoke { _ in } == 0)
    #expect(multicast.isEmpty)
    // This object has never been added.
    do { _ = Ear("b", diary, onDeinit: { #expect(!multicast.remove($0)) }) }
  }

  @Test func aCallMayGiveUpTheMulticast() {
    var multicast: MulticastDelegate<Ear>? = MulticastDelegate<Ear>()
    let (a, b) = (ear("a"), ear("b"))
    multicast!.add(a)
    multicast!.add(b)
    weak let isThere = multicast
    multicast!.invoke {
      multicast = nil
      $0.hear("x")
    }
    #expect(diary.read().first == "a x")
    #expect(isThere == nil)
    withExtendedLifetime((a, b)) {}
  }

  @Test func strongDelegatesEndWithTheMulticast() {
    let gone = Diary()
    do {
      let multicast = MulticastDelegate<Ear>(reference: .strong)
      for name in ["a", "b"] {
        multicast.add(Ear(name, diary, onDeinit: { gone.write($0.description) }))
      }
      #expect(gone.read() == [])
    }
    #expect(gone.read().sorted() == ["a", "b"])
  }

  @Test func aPausedDelegateIsLeftOut() {
    let multicast = MulticastDelegate<Ear>()
    let (a, b) = (ear("a"), ear("b"))
    let registration = multicast.add(a)
    multicast.add(b)
    #expect(registration.pause() && registration.isPaused)
    multicast.invoke { $0.hear("x") }
    #expect(diary.read() == ["b x"])
    #expect(multicast.count == 2 && multicast.contains(a))
    #expect(multicast.delegates.map { "\($0)" } == ["a", "b"])
    #expect(registration.resume() && !registration.isPaused)
    multicast.invoke { $0.hear("y") }
    #expect(diary.read() == ["a y", "b y"])
    registration.remove()
    #expect(!registration.pause() && !registration.resume() && !registration.isPaused)
    withExtendedLifetime((a, b)) {}
  }

  @Test func invokesOnAQueueThoseThatAreStillThere() {
    let queue = DispatchQueue(label: "test")
    let multicast = MulticastDelegate<any Listener>()
    let (a, b, c) = (ear("a"), ear("b"), ear("c"))
    multicast.add(a)
    let registration = multicast.add(b)
    queue.suspend()
    multicast.invoke(on: queue) {
      dispatchPrecondition(condition: .onQueue(queue))
      $0.hear("x")
    }
    multicast.invoke(on: queue) { $0.hear("y") }
    registration.remove()
    multicast.add(c)
    #expect(diary.read() == [])
    queue.resume()
    queue.sync {}
    #expect(diary.read() == ["a x", "a y"])
    withExtendedLifetime((a, b, c)) {}
  }

  @Test @available(*, deprecated) func oldNamesDoTheSame() {
    let multicast = MulticastDelegate<any Listener>(delegates: [])
    let a = ear("a")
    multicast.addDelegate(a)
    multicast.invokeDelegates { $0.hear("x") }
    multicast.notifyDelegates { $0.hear("y") }
    multicast.removeDelegate(a)
    multicast.notifyDelegates { $0.hear("z") }
    #expect(diary.read() == ["a x", "a y"])
  }
}
