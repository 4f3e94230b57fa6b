/// The arguments that an invocation passes to each delegate.
struct Invocation {
  let event: UInt32
  let payload: UnsafeRawPointer?
  let size: Int

  /// Whether a delegate with this event mask wants the event. The mask does not apply to event
  /// numbers of 64 and above, so every delegate wants these events.
  func isWanted(_ events: UInt64) -> Bool {
    event >= 64 || events & (1 << UInt64(event)) != 0  //~ events_ignored
  }
}
