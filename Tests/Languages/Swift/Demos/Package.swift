// swift-tools-version: 6.2
import PackageDescription

/// These programs use the module's older classes, and are compiled in the older Swift 5 language
/// mode.
private let demos = ["CallNode", "DispatchSystem", "Emergencies", "SecurityCenter", "UpdateTitle"]

let package = Package(
  name: "multicast-swift-demos",
  traits: [.trait(name: "WeakBoxes")],
  dependencies: [
    .package(
      name: "multicast", path: "../../../..",
      traits: [.trait(name: "WeakBoxes", condition: .when(traits: ["WeakBoxes"]))])
  ],
  targets: demos.map {
    .executableTarget(
      name: $0 + "Demo",
      dependencies: [.product(name: "MulticastSwift", package: "multicast")], path: $0,
      exclude: ["expected.txt"], swiftSettings: [.swiftLanguageMode(.v5)])
  }
)
