"""Builds libmulticast from the archive of a release, without Swift."""

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rm


class MulticastConan(ConanFile):
    name = "multicast"
    description = "One-to-many delegation for C and every language that can call C"
    license = "MIT"
    topics = ("delegates", "observer", "signals", "events")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    languages = "C"

    def set_version(self):
        self.version = next(iter(self.conan_data["sources"]))

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("libmulticast runs on Linux")
        if self.settings.arch not in ("x86_64", "armv8", "riscv64"):
            raise ConanInvalidConfiguration("there is libmulticast for x86-64, arm64 and riscv64")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["MULTICAST_SWIFTC"] = "OFF"
        toolchain.cache_variables["MULTICAST_BUILD_EXAMPLES"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        # CMake has installed both kinds of library. Remove the kind that was not selected; the
        # CMake files then use the remaining one.
        other, targets = "libmulticast.so*", "Shared"
        if self.options.shared:
            other, targets = "libmulticast.a", "Static"
        rm(self, other, f"{self.package_folder}/lib")
        rm(self, f"multicast{targets}Targets*.cmake", f"{self.package_folder}/lib/cmake/multicast")

    def package_info(self):
        self.cpp_info.libs = ["multicast"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("pkg_config_name", "multicast")
        # find_package(multicast CONFIG) finds the library's own files.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/multicast"]
