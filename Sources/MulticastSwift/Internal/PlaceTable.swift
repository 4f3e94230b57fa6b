/// Maps numbers to the places of a multicast's delegates.
///
/// Each number is stored in the `events` field of a registration. This field is otherwise unused,
/// because these multicasts are visited but never invoked.
final class PlaceTable: Sendable {
  private struct Entry: Sendable {
    let place: Place
    /// nil while the delegate is being added.
    var registration: Registration?
  }

  private struct Entries: Sendable {
    var ofNumber: [UInt64: Entry] = [:]
    var newest: UInt64 = 0
    /// If the table contains this many entries, an insertion first drops the entries of removed
    /// delegates.
    var limit = 1
  }

  private let entries = Locked(Entries())

  /// Stores the place of a delegate that is about to be added, and returns its number.
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
    // A place may hold the last reference to another object, so release it outside the lock.
    withExtendedLifetime(dropped) {}
    return number
  }

  /// Sets the registration of a delegate that has just been added.
  func set(_ registration: Registration, at number: UInt64) {
    entries.withLock { $0.ofNumber[number]?.registration = registration }
  }

  /// Returns nil for a delegate that is called on the notifying thread.
  func place(of registration: Registration) -> Place? {
    let number = registration.events
    return number == 0 ? nil : entries.withLock { $0.ofNumber[number]?.place }
  }
}
