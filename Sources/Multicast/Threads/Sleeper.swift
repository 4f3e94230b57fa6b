import MulticastShims
import Synchronization

/// A sleeping thread in the wait graph. The struct is stored on that thread's stack, and linked
/// into a list of sleeping threads whose keys have the same hash. The waits' lock guards the
/// struct.
///
/// A thread that makes the condition of a wait true wakes the threads sleeping on the wait's key. A
/// thread that changes which threads can end waits wakes all sleeping threads (see `Waits.wake`).
struct Sleeper: ~Copyable, Linked {
  /// The key of a wait, which is an address or a handle.
  typealias Key = UInt64

  let wait: Wait
  let key: Key
  /// The record of the thread, if it has one.
  private let thread: UnsafeMutablePointer<ThreadRecord.Storage>?
  /// The system's number for the thread, and the time when the thread went to sleep. If the thread
  /// has no record, reports use these two fields.
  let systemNumber: UInt32
  let since: UInt64
  /// 0 until the thread is woken. The links below are in use only while this field is 0.
  let isWoken = Atomic<UInt32>(0)
  private var nextOfList: UnsafeMutablePointer<Sleeper>?
  private var previousOfList: UnsafeMutablePointer<Sleeper>?
  /// The next sleeping thread without a record, if this thread has no record either.
  var next: UnsafeMutablePointer<Sleeper>?

  init(wait: Wait, key: Key, since: UInt64, by thread: ThreadRecord?) {
    self.wait = wait
    self.key = key
    self.since = since
    self.thread = thread?.storage
    systemNumber = thread == nil ? shims_get_thread_id() : 0
  }

  typealias List = UnsafeMutablePointer<shims_sleepers>

  static func list(of key: Key) -> List {
    let hash = key &* 0x9E37_79B9_7F4A_7C15 >> 32
    return shims_get_sleepers(Int(truncatingIfNeeded: hash) & (Int(SHIMS_SLEEPER_LISTS) - 1))
  }

  static func first(_ list: List) -> UnsafeMutablePointer<Sleeper>? {
    list.pointee.first?.assumingMemoryBound(to: Sleeper.self)
  }

  /// The first thread sleeping on a key, at or after a given thread in the key's list.
  static func find(
    _ key: Key, from first: UnsafeMutablePointer<Sleeper>?
  ) -> UnsafeMutablePointer<Sleeper>? {
    var sleeper = first
    while let current = sleeper, current.pointee.key != key { sleeper = current.pointee.nextOfList }
    return sleeper
  }

  /// Appends a thread to its list, or inserts the thread at the front if it was woken spuriously.
  static func link(_ sleeper: UnsafeMutablePointer<Sleeper>, isAgain: Bool) {
    let list = list(of: sleeper.pointee.key)
    let last = list.pointee.last?.assumingMemoryBound(to: Sleeper.self)
    let (previous, next) = isAgain ? (nil, first(list)) : (last, nil)
    connect(previous, sleeper, in: list)
    connect(sleeper, next, in: list)
  }

  /// Links two neighbours in a list. If one of them is nil, the other becomes an end of the list.
  private static func connect(
    _ previous: UnsafeMutablePointer<Sleeper>?, _ next: UnsafeMutablePointer<Sleeper>?,
    in list: List
  ) {
    if let previous {
      previous.pointee.nextOfList = next
    } else {
      list.pointee.first = UnsafeMutableRawPointer(next)
    }
    if let next {
      next.pointee.previousOfList = previous
    } else {
      list.pointee.last = UnsafeMutableRawPointer(previous)
    }
  }

  static func noteWoken(_ sleeper: UnsafeMutablePointer<Sleeper>) {
    sleeper.pointee.thread?.pointee.isWoken = true
  }

  /// Removes a thread from its list, which ends its sleep. Returns the next thread of the list.
  @discardableResult
  static func unlink(
    _ sleeper: UnsafeMutablePointer<Sleeper>
  ) -> UnsafeMutablePointer<Sleeper>? {
    let list = list(of: sleeper.pointee.key)
    let next = sleeper.pointee.nextOfList
    connect(sleeper.pointee.previousOfList, next, in: list)
    // Release: pairs with the acquire in `Waits.sleep`, where the thread reads this field without
    // the lock.
    sleeper.pointee.isWoken.store(1, ordering: .releasing)  // order: woken
    return next
  }

  static func word(of sleeper: UnsafeMutablePointer<Sleeper>) -> UnsafeMutablePointer<UInt32> {
    UnsafeMutableRawPointer(sleeper.pointee.isWoken.address).assumingMemoryBound(to: UInt32.self)
  }

  static func forgetAllInChild() {
    for index in 0..<Int(SHIMS_SLEEPER_LISTS) {
      shims_get_sleepers(index).pointee = shims_sleepers()
    }
  }
}

protocol Linked: ~Copyable {
  var next: UnsafeMutablePointer<Self>? { get set }
}

extension UnsafeMutablePointer where Pointee: Linked & ~Copyable {
  /// The first matching element at or after this element.
  func first(where isWanted: (Self) -> Bool) -> Self? {
    var next: Self? = self
    while let current = next, !isWanted(current) { next = current.pointee.next }
    return next
  }

  /// Removes this element from the list that starts with `first`, if it is in that list.
  func unlink(from first: inout Self?) {
    if first == self { return first = pointee.next }
    var other = first
    while let current = other {
      if current.pointee.next == self { current.pointee.next = pointee.next }
      other = current.pointee.next
    }
  }
}

extension Atomic {
  /// The address of an atomic variable that does not move, such as a variable in a slot, a record
  /// or a block.
  var address: UnsafeMutablePointer<Self> {
    withUnsafePointer(to: self) { UnsafeMutablePointer(mutating: $0) }
  }
}
