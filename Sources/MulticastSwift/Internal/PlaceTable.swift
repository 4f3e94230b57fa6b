/// The places of a multicast's delegates, each under a number.
///
/// A registration has the number as its `events`, which mean nothing to a multicast that is visited
/// only. So whoever sees the registration finds its place.
final class PlaceTable: Sendable {
  private struct Entry: Sendable {
    let place: Place
    /// nil: it is just being added.
    var registration: Registration?
  }

  private struct Entries: Sendable {
    var ofNumber: [UInt64: Entry] = [:]
    var newest: UInt64 = 0
    /// Entries of delegates that were removed are dropped when there are that many.
    var limit = 1
  }

  private let entries = Locked(Entries())

  /// Keeps a place for a delegate that is to be added.
  func insert(_ place: Place) -> UInt64 {
    let (number, dropped) = entries.withLock { entries in
      var dropped: [Place] = []
      if entries.ofNumber.count >= entries.limit {
        for (number, entry) in entries.ofNumber where entry.registration?.isValid == false {
          dropped.append(entry.place)
          entries.ofNumber[number] = nil
        }
        entries.limit = 1 + 2 * entries.ofNumber.count
      }
      entries.newest += 1
      entries.ofNumber[entries.newest] = Entry(place: place)
      return (entries.newest, dropped)
    }
    // A place may have the last reference to an object of others: not under the lock.
    withExtendedLifetime(dropped) {}
    return number
  }

  /// The delegate was added.
  func set(_ registration: Registration, at number: UInt64) {
    entries.withLock { $0.ofNumber[number]?.registration = registration }
  }

  /// nil: the thread that notifies.
  func place(of registration: Registration) -> Place? {
    let number = registration.events
    return number == 0 ? nil : entries.withLock { $0.ofNumber[number]?.place }
  }
}
