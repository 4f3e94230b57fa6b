/// Members that few multicasts use.
final class Extras: Sendable {
  let places = Places()
  let watch = OwnWatch()
}
