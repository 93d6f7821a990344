# A Spack recipe: copy this folder into the packages/ of a repository of yours (spack repo create), then, in a checkout of
# ergotune, "spack dev-build ergotune@main".
from spack.package import *


class Ergotune(CMakePackage):
    """Energy-aware auto-tuner for GPU kernels: finds the configuration that needs least energy, least time, or the best
    trade between them. Drivers (CUDA, OpenCL, NVML) are opened at run time, so it builds without any."""

    # set to where your copy lies: git = "https://..." or "file:///path/of/a/checkout"
    homepage = "file:///README.md"
    git = "file:///path/to/ergotune"
    license("Apache-2.0")

    version("main", branch="main")

    variant("python", default=False, description="Build the Python package's extension module")

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
    depends_on("zlib-api")
    depends_on("xxhash")
    depends_on("libevent@2.1:")
    depends_on("python@3.9:", when="+python")
    depends_on("py-pybind11@2.11:", when="+python")
    generator("ninja")
    conflicts("%gcc@:11", msg="C++20 as g++ 12 has it is needed")

    def cmake_args(self):
        return [
            self.define("ERGOTUNE_BUILD_TESTS", False),
            self.define_from_variant("ERGOTUNE_BUILD_PYTHON", "python"),
        ]
