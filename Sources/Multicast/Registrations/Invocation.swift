/// The arguments that an invocation passes to each delegate.
struct Invocation {
  let event: UInt32
  let payload: UnsafeRawPointer?
  let size: Int

  /// Whether a delegate with this event mask wants the event. Events from 64 on are not subject to
  /// the mask, so every delegate wants them.
  func isWanted(_ events: UInt64) -> Bool {
    event >= 64 || events & (1 << UInt64(event)) != 0  //~ events_ignored
  }
}
