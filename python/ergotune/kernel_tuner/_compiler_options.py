"""The compiler that a script means, and its options as the compiler takes them that is used here."""

import os
import re
import shutil
import warnings
from pathlib import Path

_OPENMP = {"fortran": re.compile(r"^\s*use\b.*\bomp_lib\b", re.I | re.M), "cpp": re.compile(r"^\s*#\s*include\s*[<\"]omp\.h[>\"]", re.M)}
#: Options of nvcc that are followed by a value, which NVRTC takes only behind "=".
_WITH_VALUE = ("-Xptxas", "--ptxas-options", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-Xcompiler",
               "--compiler-options", "-ccbin", "--compiler-bindir", "-std", "--std")
#: What nvcc lets device code call, NVRTC does where code without a mark is the device's.
_RELAXED = re.compile(r"-{1,2}expt-relaxed-constexpr$")
#: Options of nvcc that NVRTC refuses: for host code, linking, several architectures, and what is printed.
_NOT_NVRTC = re.compile(r"-O\d$|-m64$|-g$|-[lL](?!ineinfo)\S|-{1,2}(code|gpu-code|gencode|generate-code|Xcompiler|compiler-options|ccbin|"
                        r"compiler-bindir)=|-{1,2}(allow-unsupported-compiler|res-usage|resource-usage|keep|extended-lambda|"
                        r"expt-extended-lambda)$|-Wno-deprecated-gpu-targets$|-Werror\b")
#: What only nvcc compiles in a C function's source.
_CUDA = re.compile(r"__global|__syncthreads\(\)|threadIdx|#include <cuda|cudaMemcpy")


def compiler_for(compiler, language, source, file):
    """The command that compiles. C functions with CUDA in them are nvcc's where no other compiler than g++ is asked for, as in Kernel Tuner."""
    if language == "cpp" and compiler in (None, "g++") and (file.endswith(".cu") or _CUDA.search(source)):
        toolkits = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]
        compiler = shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(f"{folder}/bin" for folder in toolkits)) or compiler
    if language == "cpp" and compiler and Path(str(compiler)).name == "nvcc":
        return f"{compiler} -x cu --forward-unknown-to-host-compiler"  # for -fPIC
    return compiler


def for_compiler(options, language, source, compiler):
    """The options; with that of OpenMP where C or Fortran uses its library, and without those that only nvcc knows for NVRTC."""
    options = [str(option) for option in options]
    if language == "cuda":
        return _for_nvrtc(options)
    uses = _OPENMP.get(language)
    if uses and uses.search(source) and not any("openmp" in option or option.startswith("-mp") for option in options):
        options.append("-mp" if "nv" in str(compiler) else "-fopenmp")
    return options


def _for_nvrtc(options):
    joined = []
    for option in options:
        if joined and joined[-1] in _WITH_VALUE:
            joined[-1] += "=" + option
        else:
            joined.append("-default-device" if _RELAXED.match(option) else option)
    dropped = [option for option in joined if _NOT_NVRTC.match(option)]
    if dropped:
        warnings.warn(f"NVRTC compiles the kernel, which has no options like nvcc's {' '.join(dropped)}: left out", stacklevel=6)
    return [option for option in joined if option not in dropped]
