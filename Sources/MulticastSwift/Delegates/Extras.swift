/// What few multicasts have.
final class Extras: Sendable {
  let places = Places()
  let watch = OwnWatch()
}
