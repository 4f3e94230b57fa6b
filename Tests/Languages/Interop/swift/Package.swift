// swift-tools-version: 6.2
import PackageDescription

// An ordinary Swift program with its own runtime. Like a C program, it uses the header, as the
// module CMulticast, and the shared library.
// Tests/Languages/Swift tests MulticastSwift.
let package = Package(
  name: "multicast-interop",
  dependencies: [.package(name: "multicast", path: "../../../..", traits: ["Embedded"])],
  targets: [
    .testTarget(
      name: "MulticastTests",
      dependencies: [.product(name: "multicast", package: "multicast")]
    )
  ]
)
