// swift-tools-version: 6.2
import PackageDescription

private let multicast: Target.Dependency = .product(name: "MulticastSwift", package: "multicast")

/// Programs in the way of the older classes, in the language mode of their time.
private let demos = ["CallNode", "DispatchSystem", "Emergencies", "SecurityCenter", "UpdateTitle"]

let package = Package(
  name: "multicast-swift-tests",
  traits: [.trait(name: "WeakBoxes")],
  dependencies: [
    .package(
      name: "multicast", path: "../..",
      traits: [.trait(name: "WeakBoxes", condition: .when(traits: ["WeakBoxes"]))])
  ],
  targets: [
    .testTarget(
      name: "MulticastSwiftTests",
      dependencies: [multicast, .product(name: "CMulticast", package: "multicast")],
      path: "MulticastSwiftTests",
      swiftSettings: [.treatAllWarnings(as: .error)])
  ]
    + demos.map {
      .executableTarget(
        name: $0 + "Demo", dependencies: [multicast], path: "Demos/\($0)",
        exclude: ["expected.txt"], swiftSettings: [.swiftLanguageMode(.v5)])
    }
)
