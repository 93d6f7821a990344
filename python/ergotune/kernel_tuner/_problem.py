"""A problem of ergotune's from tune_kernel's arguments."""

import ctypes
import inspect
import re
from pathlib import Path

import numpy as np

from .. import _core
from ._absent import NotSupported
from ._compiler_options import compiler_for, for_compiler
from ._constants import with_constants
from ._rows import plain
from ._symbols import trace
from ._tensors import GpuArray, constant_pointers, is_array, order_of, placed
from ._tunable import Conditions, is_tunable, leaves, refuse_scalars
from .util import detect_language

LANGUAGES = {"CUDA": "cuda", "CUPY": "cuda", "NVCUDA": "cuda", "PYCUDA": "cuda", "OPENCL": "opencl", "C": "cpp",
             "FORTRAN": "fortran", "HIP": "hip"}
_INSTEAD = {"JULIA": "tune the compiled kernel's CUDA source", "HYPERTUNER": "use `ergotune score` to tune strategies"}
_MOST_SOURCES = 20_000
_CTYPES = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short", "int32": "int",
           "uint32": "unsigned int", "int64": "long", "uint64": "unsigned long", "float32": "float", "float64": "double"}


#: What the text of a kernel has and the name of a file has not, in any of the languages.
_CODE = re.compile(r"[(){};\n#]")
_FORTRAN_FILE = re.compile(r"\.f(or|tn|90|95|03|08|18)?$", re.I)
_FORTRAN_COMPILER = re.compile(r"(fortran|flang|\bftn|\bifort|\bifx|\bg?f(77|90|95))[-\d.]*$", re.I)


def language_of(lang, text, file="", compiler=None):
    """ergotune's name of the language. Fortran is C in Kernel Tuner: the file's name tells which it is, or the compiler's where
    the source is a text. Raises NotSupported."""
    if not lang:
        lang = detect_language(text)
    name = str(lang).upper()
    if name == "C" and (_FORTRAN_FILE.search(file) or not file and _FORTRAN_COMPILER.search(str(compiler or ""))):
        name = "FORTRAN"
    if name in LANGUAGES:
        return LANGUAGES[name]
    instead = _INSTEAD.get(name, f"it takes {', '.join(LANGUAGES)}")
    raise NotSupported(f"ergotune.kernel_tuner does not know lang={lang!r}: {instead}")


def kernel_tuner_language(lang, language):
    """Kernel Tuner's name for it, as observers see it."""
    return lang or {"cpp": "C", "opencl": "OpenCL", "cuda": "CUDA", "fortran": "Fortran", "hip": "HIP"}[language]


def read_source(kernel_source):
    """(text, file, further files); a function is given back as it is. Raises FileNotFoundError."""
    others = []
    if isinstance(kernel_source, (list, tuple)):
        kernel_source, *others = kernel_source
    for other in others:
        Path(other).read_bytes()
    if callable(kernel_source):
        return kernel_source, "", others
    text = str(kernel_source)
    if isinstance(kernel_source, Path) or text and not _CODE.search(text):
        return Path(text).read_text(), text, others
    return text, "", others


class Builder:
    """One problem in the making. ``returned`` is a cell that a C function's return value is written to, or None."""

    def __init__(self, kernel_name, kernel_source, tune_params, lang, block_size_names, compiler=None, constants=None):
        self.tune_params = {name: [plain(v) for v in values] for name, values in tune_params.items()}
        self.source, self.file, self.others = read_source(kernel_source)
        first = {name: values[0] for name, values in self.tune_params.items() if values}
        self.language = language_of(lang, self.source(first) if callable(self.source) and not lang else str(self.source), self.file,
                                    compiler)
        self.compiler, self.constants = compiler_for(compiler, self.language, str(self.source), self.file), constants
        self.kernel_name = kernel_name
        self.block_size_names = block_size_names
        self.problem = _core.Problem(kernel_name)
        self.returned = None
        self.checked = set()  # positions of arguments that have an answer
        self._functions = 0

    def add_parameters(self):
        """The default is one that is not in the space: what Kernel Tuner measures first is what the strategy asks for."""
        for name, values in self.tune_params.items():
            if not values:
                raise ValueError(f"tune_params[{name!r}] has no values")
            self.problem.add_parameter(name, values, "(none of them)")

    def expression(self, value, what):
        """An expression for a number, a text or a function of the configuration."""
        if not callable(value):
            return str(plain(value))
        text = trace(value, self.tune_params)
        if text is not None and not isinstance(text, list):
            return text
        return self._generated(lambda values: plain(value(values)), what, value)

    def _generated(self, function, what, decides=None):
        """A parameter whose only value is what the function gives: how functions that decide by values reach the kernel.

        `decides`: the user's function that it calls, by which sessions know it."""
        self._functions += 1
        name = f"ergotune_{what}_{self._functions}"
        names = list(self.tune_params)

        def generate(earlier, /):
            return [function({n: earlier[n] for n in names})]

        generate.__signature__ = inspect.signature(generate)  # not that of the function
        generate.__wrapped__ = decides or function
        self.problem.add_generator(name, generate)
        return name

    def sizes(self, problem_size):
        """Three expressions."""
        if callable(problem_size):
            traced = trace(problem_size, self.tune_params)
            if traced is None:
                first = problem_size({name: values[0] for name, values in self.tune_params.items()})
                count = len(first) if isinstance(first, (tuple, list)) else 1
                sizes = [self._generated(
                    lambda values, i=i: _whole(np.atleast_1d(np.array(problem_size(values), dtype=object))[i], values),
                    "problem_size", problem_size) for i in range(count)]
            else:
                sizes = traced if isinstance(traced, list) else [traced]
        elif isinstance(problem_size, (str, int, np.integer, float)):
            sizes = [problem_size]
        else:
            sizes = list(problem_size)
        texts = [self.expression(s, "problem_size") for s in sizes]
        return texts + ["1"] * (3 - len(texts))

    def divisor(self, divisors, default):
        """The expression that a size is divided by."""
        if divisors is None:
            return default
        if callable(divisors) or isinstance(divisors, (str, int, float, np.generic)):
            return f"({self.expression(divisors, 'grid_div')})"
        parts = [self.divisor(d, "1") for d in divisors]
        return "(" + "*".join(parts) + ")" if parts else "1"

    def geometry(self, problem_size, grid_div):
        """(block, grid): expressions for x, y, z."""
        names = self.block_size_names
        block = [name if name in self.tune_params else default for name, default in zip(names, ("256", "1", "1"))]
        grid = []
        for size, divisors, name in zip(self.sizes(problem_size), grid_div, names):
            divisor = self.divisor(divisors, name if name in self.tune_params else "1")
            grid.append(size if divisor == "1" else f"ceil(({size}) / ({divisor}))")
        return block, grid

    def add_arguments(self, arguments):
        self._constant = set() if callable(self.source) else constant_pointers(self.source, self.kernel_name)
        conditions = Conditions(self.tune_params, self._generated)
        for i, argument in enumerate(arguments):
            for name, leaf, path in leaves(i, argument):
                self._add_argument(name, leaf, i, conditions.of(path))

    def _add_argument(self, name, argument, position, when):
        if isinstance(argument, GpuArray):  # what is never written needs no copy
            access = "read" if position in self._constant - self.checked else "read_write"
            self.problem.add_buffer(name, argument.tensor, access, when)
            return
        if is_array(argument):
            self.problem.add_buffer(name, elements(argument), "read_write", when)
            return
        if not isinstance(argument, (np.ndarray, np.generic)):
            raise TypeError(f"Argument at position {position} of type: {type(argument)} should be of type np.ndarray or numpy "
                            "scalar (write np.int32(n), np.float32(x))")
        scalar = np.asarray(argument)
        if scalar.dtype.kind in "cV" and self.language not in ("cpp", "fortran"):  # a structure
            self.problem.add_scalar(name, scalar.tobytes(), "uint8", when)
            return
        kind = "uint8" if scalar.dtype == bool else scalar.dtype.name
        self.problem.add_scalar(name, int(scalar) if scalar.dtype == bool else scalar.item(), kind, when)

    def set_source(self, arguments):
        """The source with what makes its return value seen; further files by their folders."""
        text = self._one_text()
        function = self.kernel_name
        for name in self.tune_params:  # a template's arguments may be parameters
            if "<" in function:
                function = re.sub(rf"\b{re.escape(name)}\b", "{{" + name + "}}", function)
        if self.language == "cpp" and returns_time(text, self.kernel_name):
            refuse_scalars(arguments, self.kernel_name)
            self.returned = ctypes.c_double(float("nan"))
            text += _timed_call(self.kernel_name, arguments)
            function = "ergotune_timed_" + self.kernel_name
        if self.language == "fortran":
            function, is_function = fortran_procedure(text, self.kernel_name)
            self.returned = ctypes.c_double(float("nan")) if is_function else None
        folders = sorted({str(Path(f).resolve().parent) for f in self.others} | ({"."} if not self.file else set()))
        self.problem.set_source(self.language, text, function, self.file, folders)
        if self.returned is not None:
            self.problem.add_scalar("ergotune_returned", ctypes.addressof(self.returned), "uint64")

    def _one_text(self):
        if not callable(self.source):
            return with_constants(self.source, self.constants, self.language)
        space = _core.SearchSpace(self.problem)
        if len(space) > _MOST_SOURCES:
            raise NotSupported(f"ergotune.kernel_tuner calls a function as kernel_source for every configuration: "
                               f"{len(space)} are too many; parameters are macros, so let the preprocessor choose")
        numbers = {}
        for i in range(len(space)):
            values = {name: space[i][name] for name in self.tune_params}
            numbers.setdefault(self.source(values), len(numbers))
        texts = [with_constants(text, self.constants, self.language) for text in numbers]
        if len(texts) == 1:
            return texts[0]
        name = self._generated(lambda values: numbers.setdefault(self.source(values), 0), "source", self.source)
        return "\n".join(f"#if {name} == {number}\n{text}\n#endif" for number, text in enumerate(texts))

    def set_launch(self, problem_size, grid_div, smem_args):
        block, grid = self.geometry(problem_size, grid_div)
        unknown = set(smem_args or {}) - {"size"}
        if unknown:
            raise NotSupported(f"ergotune.kernel_tuner does not support smem_args {sorted(unknown)}: only 'size' (bytes)")
        shared = self.expression((smem_args or {}).get("size", 0), "shared_memory")
        if self.language in ("cpp", "fortran"):
            if smem_args:
                raise NotSupported("ergotune.kernel_tuner does not support smem_args of C and Fortran functions: there is no shared memory")
            self.problem.set_launch(grid=["1"], block=["1"])  # a function is called once, whatever its size says
        else:
            self.problem.set_launch(grid=grid, block=block, shared_memory_bytes=shared)
        return block, grid

    def add_options(self, compiler_options, defines, block, grid):
        options = for_compiler(compiler_options or [], self.language, str(self.source), self.compiler)
        if defines is None:
            if self.language not in ("cpp", "fortran"):
                options += [f"-Dgrid_size_{axis}={{{{int({size})}}}}" for axis, size in zip("xyz", grid)]
            options += [f"-D{name}={default}" for name, default in zip(self.block_size_names, block)
                        if name not in self.tune_params]
            options.append("-Dkernel_tuner=1")
        else:
            for name, value in defines.items():
                text = self.expression(value, "define") if callable(value) else str(value)
                known = callable(value) or text in self.tune_params
                options.append(f"-D{name}={{{{{text}}}}}" if known else f"-D{name}={text}")
        self.problem.add_options(options, self.language)


def _whole(value, values):
    from .util import evaluate

    return int(evaluate(value, values)) if isinstance(value, str) else int(value)


def elements(array):
    """The array's elements as they lie in memory, in types that kernels have: complex as pairs of floats, bool and structs as
    bytes. Raises ValueError for an array with gaps, as Kernel Tuner's GPU backends do."""
    if not array.flags.forc:
        raise ValueError(f"an array of shape {array.shape} is not contiguous in memory, as a kernel's argument has to be: "
                         "pass numpy.ascontiguousarray(array) or numpy.asfortranarray(array)")
    flat = array.ravel(order_of(array))
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    if flat.dtype.kind == "c":
        return flat.view({8: np.float32, 16: np.float64}[flat.dtype.itemsize])
    if flat.dtype.kind in "bV" or flat.dtype.names:
        return flat.view(np.uint8)
    return flat


def returns_time(text, name):
    """Whether a C function is declared to return a floating-point number: Kernel Tuner takes it for its time in ms."""
    return re.search(rf"\b(?:float|double)\s+{re.escape(name)}\s*\(", text) is not None


def fortran_procedure(text, name):
    """(name with its module, whether it is a function). Procedures with bind(c) have their name alone."""
    module = ""
    for line in text.splitlines():
        words = re.match(r"\s*(end\s*)?module\s*(\w*)\s*$", line.split("!")[0], re.I)
        if words and words.group(2).lower() != "procedure":
            module = "" if words.group(1) else words.group(2)
        head = re.search(rf"\b(subroutine|function)\s+{re.escape(name)}\b", line, re.I)
        if head and not re.match(r"\s*end\b", line, re.I):
            return (f"{module}::{name}" if module else name), head.group(1).lower() == "function"
    return name, False


def _timed_call(name, arguments):
    """A function beside the user's that keeps what his returns."""
    types, values = [], []
    for i, argument in enumerate(arguments):
        argument = placed(argument)
        if is_tunable(argument) or is_array(argument):
            types.append(f"void* a{i}")
            values.append(f"ErgotuneTimedPointer{{a{i}}}")
        else:
            dtype = np.asarray(argument).dtype
            types.append(f"{'bool' if dtype == bool else _CTYPES.get(dtype.name, 'double')} a{i}")
            values.append(f"a{i}")
    types.append("unsigned long address")
    return ("\nnamespace { struct ErgotuneTimedPointer { void* pointer;\n"
            "  template <class T> operator T*() const { return static_cast<T*>(pointer); } }; }\n"
            f"static void ergotune_timed_{name}({', '.join(types)}) {{\n"
            f"  *reinterpret_cast<volatile double*>(address) = {name}({', '.join(values)});\n}}\n")
