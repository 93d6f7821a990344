# A Spack recipe of the command, the library and the launcher; the Python package is built by pip. Copy this folder into the
# packages/ of a repository of yours (spack repo create), then, in a checkout of ergotune, "spack dev-build ergotune@main".
from spack.package import *


class Ergotune(CMakePackage):
    """Energy-aware auto-tuner for GPU kernels: finds the configuration that needs least energy, least time, or the best
    trade between them. Drivers (CUDA, HIP, OpenCL, NVML) are opened at run time, so it builds without any."""

    license("Apache-2.0")

    version("main")  # a checkout: spack dev-build

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@9:")
    depends_on("cli11@2.3:")
    depends_on("nlohmann-json@3.11:")
    depends_on("simdjson@3:")
    depends_on("tomlplusplus@3.3:")
    depends_on("sqlite@3.40:")
    depends_on("eigen@3.4:")
    depends_on("boost@1.74:+math")
    depends_on("zlib-api")
    depends_on("xxhash")
    depends_on("libevent@2.1:")
    generator("ninja")
    conflicts("%gcc@:11", msg="C++20 as g++ 12 has it is needed")

    def cmake_args(self):
        return [self.define("ERGOTUNE_BUILD_TESTS", False)]
