// swift-tools-version: 6.0
import PackageDescription

// An ordinary Swift program, with its own runtime, that uses the library as any C program does:
// through the header's module map and the shared library. (Depending on the target instead of the
// product would link Embedded objects into an ordinary program.)
let package = Package(
  name: "multicast-interop",
  dependencies: [.package(name: "multicast", path: "../../..")],
  targets: [
    .testTarget(
      name: "MulticastTests",
      dependencies: [.product(name: "multicast", package: "multicast")]
    )
  ]
)
