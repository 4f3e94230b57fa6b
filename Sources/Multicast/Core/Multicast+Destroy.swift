import Synchronization

extension Multicast {
  /// Removes all delegates and ends the handle.
  ///
  /// If another thread has destroyed it, or is just doing so, this fails; after waiting as well.
  @inline(__always)
  func destroy(_ timeout: Timeout = .unlimited) -> Removal.Outcome {
    var removal = Removal(from: self)
    removal.mark { (removal) throws(Status) in
      _ = removal.unlinkAll(.all)
      // The handle ends before the list is replaced. An invocation that finds the list of a later
      // occupant then finds that the handle is not its own.
      fields.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)  //~ handle_not_ended
      replaceList(by: nil, &removal)
      Self.pool.reclaim(handle.index)
    }
    return removal.finish(timeout, waitingFor: .all)
  }
}
