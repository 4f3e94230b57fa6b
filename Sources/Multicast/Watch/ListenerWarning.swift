import MulticastHeader
import MulticastShims
import Synchronization

/// Notifies a watch that a multicast has grown to the number of delegates at which the watch wants
/// a warning.
///
/// An add that only appends needs no extra check: it compares the list's count with the limit
/// anyway, and the limit is below the number for the warning (see `InvocationList.Header.limit`).
/// The add that reaches this number collects the data for the warning under the stripe's lock, and
/// calls the watch after it has released the lock.
struct ListenerWarning {
  private let target: Handle
  private let watch: Token
  private let count: UInt64
  /// The label or function that many of the delegates share.
  private var label = shims_label()
  private var hasLabel = false
  private var function: multicast_function? = nil
  private var most: UInt64 = 0

  /// Called after an add, under the stripe's lock. Nil if there is no need to notify the watch.
  init?(in multicast: Multicast) {
    let list = multicast.list.unsafelyUnwrapped
    var next = list.header.warningCount
    if next != 0 && list.live < next { return nil }
    guard let watch = Watch.current(for: multicast.handle), watch.warningCount != 0 else {
      return nil
    }
    // A count that was set for an earlier watch does not apply to this watch.
    if next == 0 || list.header.warningWatch != watch.number { next = watch.warningCount }
    list.header.setWarning(next, of: watch.number)
    if list.live < next { return nil }
    // An add inside a watch's function or at the deepest level of nesting does not notify the
    // watch. The next add notifies the watch instead.
    if let thread = ThreadRecord.current, thread.isInside(.watch) || !thread.hasRoom { return nil }
    while next <= list.live { next <<= 1 }
    list.header.setWarning(next, of: watch.number)  //~ listener_warning_notified_again
    target = multicast.handle
    self.watch = watch.id
    count = UInt64(list.live)
    withUnsafeTemporaryAllocation(of: Group.self, capacity: Group.most) {
      guard let largest = Group.largest(of: list, $0) else { return }
      most = UInt64(largest.count)
      if let text = largest.label {
        label = text.pointee
        hasLabel = true
      } else {
        function = largest.one.unsafelyUnwrapped.storage.pointee.function
      }
    }
  }

  /// Calls the watch's `listener_warning`, unless the watch has been replaced. No lock is held.
  func notify() {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { return }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    Lock.watches.lock()
    guard let watch = Watch.find(target)?.pointee, watch.id == self.watch else {
      return Lock.watches.unlock()
    }
    guard let frame = Watch.unlockAndBegin(watch.id, true, thread) else { return }
    var label = self.label
    withUnsafePointer(to: &label) {
      watch.given.listener_warning?(
        watch.given.context, multicast(id: target.rawValue), count,
        hasLabel ? shims_get_label($0) : nil, function, most)
    }
    Watch.end(watch.id, frame, thread)
  }

  /// A group of delegates with the same label, or with no label and the same function.
  private struct Group {
    /// One delegate of the group.
    var one: Registration? = nil
    var label: UnsafeMutablePointer<shims_label>? = nil
    var count: UInt32 = 0

    /// The number of groups counted at the same time.
    static let most = 8

    init() {}

    init(of registration: Registration) {
      one = registration
      count = 1
      label = registration.label
    }

    func hasSame(as other: Group) -> Bool {
      guard let one, let second = other.one else { return false }
      if let label, let text = other.label {
        return shims_equal(label, text, MemoryLayout<shims_label>.size)
      }
      return label == nil && other.label == nil && one.hasFunction(of: second)
    }

    /// Returns the largest group if it contains more than a ninth of the delegates, otherwise nil.
    /// The caller holds the stripe's lock.
    ///
    /// The first pass is the Misra-Gries algorithm. A delegate that belongs to none of the eight
    /// groups decrements the count of every group. Each such step discards nine delegates: one from
    /// each group, and the delegate itself. So a group with more than a ninth of all delegates
    /// always remains. The second pass counts the delegates of the remaining groups.
    static func largest(
      of list: InvocationList, _ groups: UnsafeMutableBufferPointer<Group>
    ) -> Group? {
      groups.initialize(repeating: Group())
      list.forEachLive { registration in
        let new = Group(of: registration)
        if let known = groups.firstIndex(where: { $0.count != 0 && $0.hasSame(as: new) }) {
          groups[known].count &+= 1
        } else if let vacant = groups.firstIndex(where: { $0.count == 0 }) {
          groups[vacant] = new
        } else {
          for index in groups.indices { groups[index].count &-= 1 }
        }
      }
      for index in groups.indices {
        if groups[index].count == 0 { groups[index].one = nil }
        groups[index].count = 0  //~ group_not_counted
      }
      list.forEachLive { registration in
        let one = Group(of: registration)
        if let known = groups.firstIndex(where: { $0.hasSame(as: one) }) {
          groups[known].count &+= 1
        }
      }
      var largest = Group()
      for group in groups where group.count > largest.count { largest = group }
      return UInt64(largest.count) &* UInt64(most &+ 1) > UInt64(list.live) ? largest : nil
    }
  }
}
