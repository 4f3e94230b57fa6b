// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "multicast-swift-benchmarks",
  dependencies: [.package(name: "multicast", path: "../../..")],
  targets: [
    .target(name: "Malloc", path: "Malloc"),
    .executableTarget(
      name: "benchmarks",
      dependencies: ["Malloc", .product(name: "MulticastSwift", package: "multicast")],
      path: "Sources", swiftSettings: [.treatAllWarnings(as: .error)]),
  ]
)
