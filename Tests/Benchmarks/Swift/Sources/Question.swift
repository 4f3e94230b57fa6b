import Malloc

/// One figure of a contender. Lower is better.
struct Question {
  let title: String
  /// The unit, which starts with a space unless it is empty.
  let unit: String
  /// Measures once, for about the given time. Ends the program if a delegate has not been called.
  let measure: (any Contender.Type, Duration) async -> Double

  private static let sizes = [1, 2, 16, 64, 256]

  static var all: [Question] {
    sizes.map { number in
      Question(title: "invoke \(number)", unit: " ns") { await invoke($0, number, $1) }
    } + [
      Question(title: "invoke 256, `weak` elsewhere, too", unit: " ns") {
        await invoke($0, 256, $1, isReferredTo: true)
      },
      Question(title: "allocations of an invocation, 1 to 256", unit: "") { type, _ in
        await allocations(type)
      },
      Question(title: "remove among 100", unit: " ns") { await remove($0, $1) },
      Question(title: "add and remove among 100", unit: " ns") { await change($0, $1) },
      Question(title: "memory of a delegate", unit: " B") { type, _ in await memory(type) },
    ]
  }

  private static func invoke(
    _ type: any Contender.Type, _ number: Int, _ time: Duration, isReferredTo: Bool = false
  ) async -> Double {
    let counters = (0..<number).map { _ in Counter() }
    let references = isReferredTo ? counters.map(Reference.init) : []
    let contender = type.init()
    counters.forEach(contender.add)
    var invocations = 0
    let result = await timed(time) { times in
      invocations += times
      await contender.invoke(times: times)
    }
    check(counters, invocations, type)
    counters.forEach(contender.remove)
    withExtendedLifetime(references) {}
    return result
  }

  /// Returns the largest number of allocations per invocation, over all numbers of delegates.
  private static func allocations(_ type: any Contender.Type) async -> Double {
    var most = 0.0
    for number in sizes { most = max(most, await allocations(type, number)) }
    return most
  }

  private static func allocations(_ type: any Contender.Type, _ number: Int) async -> Double {
    let counters = (0..<number).map { _ in Counter() }
    let contender = type.init()
    counters.forEach(contender.add)
    await contender.invoke(times: 1)
    let before = malloc_count()
    await contender.invoke(times: 100)
    let after = malloc_count()
    check(counters, 101, type)
    return Double(after - before) / 100
  }

  /// Measures ten removals at positions spread over the list. The adds between these removals are
  /// not measured.
  private static func remove(_ type: any Contender.Type, _ time: Duration) async -> Double {
    let counters = (0..<100).map { _ in Counter() }
    let contender = type.init()
    counters.forEach(contender.add)
    var (took, times, next) = (Duration.zero, 0, 0)
    while took < time {
      let removed = (0..<10).map { counters[(next + 37 * $0) % 100] }
      (contender as? SetsByName)?.finish()
      let began = ContinuousClock.now
      removed.forEach(contender.remove)
      (contender as? SetsByName)?.finish()
      took += began.duration(to: .now)
      removed.forEach(contender.add)
      (times, next) = (times + 10, (next + 1) % 100)
    }
    await contender.invoke(times: 1)
    check(counters, 1, type)
    return took / .nanoseconds(1) / Double(times)
  }

  private static func change(_ type: any Contender.Type, _ time: Duration) async -> Double {
    let counters = (0..<100).map { _ in Counter() }
    let contender = type.init()
    counters.forEach(contender.add)
    var next = 0
    let result = await timed(time) { times in
      for _ in 0..<times {
        // Remove each delegate in turn, in scattered order, and add it again.
        contender.remove(counters[next])
        contender.add(counters[next])
        next = (next + 37) % 100
      }
      (contender as? SetsByName)?.finish()
    }
    await contender.invoke(times: 1)
    check(counters, 1, type)
    return result
  }

  private static func memory(_ type: any Contender.Type) async -> Double {
    let counters = (0..<1000).map { _ in Counter() }
    let contender = type.init()
    // Memory that is allocated only once, at first use, is not counted; spare capacity is counted.
    let first = Counter()
    contender.add(first)
    await contender.invoke(times: 1)
    let before = allocated()
    counters.forEach(contender.add)
    (contender as? SetsByName)?.finish()
    let after = allocated()
    await contender.invoke(times: 1)
    check(counters, 1, type)
    return Double(after - before) / 1000
  }

  /// Returns nanoseconds per repetition.
  private static func timed(
    _ time: Duration, _ body: (_ times: Int) async -> Void
  ) async -> Double {
    var times = 1
    while true {
      let began = ContinuousClock.now
      await body(times)
      let took = began.duration(to: .now)
      if took >= time || times >= 1 << 24 { return took / .nanoseconds(1) / Double(times) }
      times *= took < time / 8 ? 4 : 2
    }
  }

  /// Returns the number of bytes that malloc has allocated.
  private static func allocated() -> Int {
    let info = mallinfo2()
    return info.uordblks + info.hblkhd
  }

  private static func check(_ counters: [Counter], _ count: Int, _ type: any Contender.Type) {
    for counter in counters where counter.count != count {
      fatalError("\(type.name) called \(counter.count) times, not \(count)")
    }
  }
}
