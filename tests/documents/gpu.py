"""Kernels in CUDA C++ and HIP are compiled by the run-time compilers, which need no GPU."""

import ctypes
import glob
import json
import os
import tomllib

# language: prefix of the compiler's functions, architecture, where it is looked for
COMPILERS = {
    "cuda": ("nvrtc", "compute_80", [f"{os.environ.get('VIRTUAL_ENV', '')}/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1*",
                                     "/usr/local/cuda*/lib64/libnvrtc.so"]),
    "hip": ("hiprtc", "gfx90a", ["/usr/lib/x86_64-linux-gnu/libhiprtc.so*", "/usr/lib/x86_64-linux-gnu/libamdhip64.so*", "/opt/rocm/lib/libhiprtc.so*"]),
}
ENDINGS = {".cu": "cuda", ".hip": "hip"}


def compile_kernel(language, text, options, function):
    """The compiler's log where the text does not compile, "" where it does, None where there is no compiler."""
    prefix, architecture, places = COMPILERS[language]
    libraries = [file for place in places for file in sorted(glob.glob(place))]
    if not libraries:
        return None
    library = ctypes.CDLL(libraries[0])
    call = lambda name, *arguments: getattr(library, prefix + name)(*arguments)
    program = ctypes.c_void_p()
    call("CreateProgram", ctypes.byref(program), text.encode(), b"kernel", 0, None, None)
    call("AddNameExpression", program, function.encode())
    options = [f"--gpu-architecture={architecture}", *options]
    result = call("CompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    size = ctypes.c_size_t()
    call("GetProgramLogSize", program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    call("GetProgramLog", program, log)
    return "" if result == 0 else log.value.decode() or f"error {result}"


def check(scratch, file):
    """The sources that the problem file names, with the macros of some of its configurations; yields what does not compile."""
    problem = tomllib.loads((scratch.path / file).read_text())
    kernel = problem.get("kernel", {})
    sources = kernel.get("source", {})
    if isinstance(sources, str):
        sources = {ENDINGS.get(sources[sources.rfind("."):], ""): sources}
    elif not isinstance(sources, dict):
        return
    for language, name in sources.items():
        if language not in COMPILERS or name not in scratch.bench.files:
            continue
        sampled = scratch.ergotune("space", file, "--profile", "h100", "--sample", "3", "--seed", "1")
        for line in sampled.stdout.splitlines():
            macros = {**problem.get("constants", {}), **json.loads(line)}
            options = [f"-D{key}={int(value) if isinstance(value, bool) else value}" for key, value in macros.items()]
            log = compile_kernel(language, scratch.bench.files[name], options, kernel["function"])
            if log is None:
                scratch.bench.say(f"  {name} not compiled: no {COMPILERS[language][0]} here")
                return
            scratch.bench.checked += 1
            if log:
                yield f"{name} does not compile as {language}: {log[:1000]}"
