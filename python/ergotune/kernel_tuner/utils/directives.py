"""Code between directives as functions to tune: OpenACC and OpenMP, C++ and Fortran.

A section is marked by ``#pragma tuner start NAME a(float*:SIZE) n(int:SIZE)`` and ``#pragma tuner stop`` (``!$tuner`` in
Fortran). :func:`process_directives` makes a function of each, which moves its data, times itself and returns ms, and
arguments for it; both are given to ``tune_kernel`` with the compiler and its flags (``-fopenmp``, ``-fopenacc``).
"""

import re
from abc import ABC, abstractmethod

import numpy as np


class Directive(ABC):
    """Kind of directives."""

    @abstractmethod
    def get(self):
        """Its name."""


class OpenACC(Directive):
    """OpenACC."""

    def get(self):
        return "openacc"


class OpenMP(Directive):
    """OpenMP."""

    def get(self):
        return "openmp"


class Language(ABC):
    """A language."""

    #: What a directive of it begins with.
    sentinel = ""

    @abstractmethod
    def get(self):
        """Its name."""

    def end_string(self):
        """What ends a section."""
        return f"{self.sentinel}tuner stop"


class Cxx(Language):
    """C++."""

    sentinel = "#pragma "

    def get(self):
        return "cxx"


class Fortran(Language):
    """Fortran."""

    sentinel = "!$"

    def get(self):
        return "fortran"


class Code:
    """What the code is written with: a directive and a language."""

    def __init__(self, directive, lang):
        self.directive, self.language = directive, lang


class ArraySize:
    """The extents of an array; those below 1 are left out."""

    def __init__(self):
        self.size = []

    def __iter__(self):
        return iter(self.size)

    def __len__(self):
        return len(self.size)

    def clear(self):
        """No extents."""
        self.size.clear()

    def get(self):
        """Number of elements; 0 where no extent is known."""
        return int(np.prod(self.size, dtype=object)) if self.size else 0

    def add(self, dim):
        """One more extent."""
        if dim >= 1:
            self.size.append(dim)


def is_openacc(directive):
    """Whether it is OpenACC."""
    return isinstance(directive, OpenACC)


def is_openmp(directive):
    """Whether it is OpenMP."""
    return isinstance(directive, OpenMP)


def is_cxx(lang):
    """Whether it is C++."""
    return isinstance(lang, Cxx)


def is_fortran(lang):
    """Whether it is Fortran."""
    return isinstance(lang, Fortran)


# -- lines -------------------------------------------------------------------------------------------------------------


def line_contains(line, target):
    """Whether ``target`` stands in the line."""
    return target in line


def directive_contains_clause(line, clauses):
    """Whether one of the clauses stands in the line."""
    return any(clause in line for clause in clauses)


def _finder(words, lang=None):
    """A function that finds directives that begin with ``words``, in one language or in the given one."""
    def find(line, lang):
        return isinstance(lang, Language) and lang.sentinel + words in line

    if lang is not None:
        return lambda line: find(line, lang)
    return find


line_contains_openacc_directive = _finder("acc")
line_contains_openacc_directive_cxx = _finder("acc", Cxx())
line_contains_openacc_directive_fortran = _finder("acc", Fortran())
line_contains_openmp_directive = _finder("omp")
line_contains_openmp_directive_cxx = _finder("omp", Cxx())
line_contains_openmp_directive_fortran = _finder("omp", Fortran())
line_contains_openacc_parallel_directive = _finder("acc parallel")
line_contains_openacc_parallel_directive_cxx = _finder("acc parallel", Cxx())
line_contains_openacc_parallel_directive_fortran = _finder("acc parallel", Fortran())
line_contains_openmp_target_directive = _finder("omp target")
line_contains_openmp_target_directive_cxx = _finder("omp target", Cxx())
line_contains_openmp_target_directive_fortran = _finder("omp target", Fortran())


def openacc_directive_contains_data_clause(line):
    """Whether an OpenACC directive moves data itself."""
    return directive_contains_clause(line, ["copy", "create", "present", "device_ptr", "attach"])  # copyin, no_create ... too


def openmp_directive_contains_data_clause(line):
    """Whether an OpenMP directive moves data itself."""
    return directive_contains_clause(line, ["map"])


# -- moving data -------------------------------------------------------------------------------------------------------


def fortran_md_size(size):
    """The extents as Fortran writes them."""
    return [f":{dim}" for dim in size]


def _range(name, size, lang):
    """The whole array, in a clause."""
    if is_cxx(lang):
        return f"{name}[:{size.get()}]"
    return f"{name}(:{size.get()})" if len(size) == 1 else f"{name}({','.join(fortran_md_size(size))})"


_ENTER = {"acc": ("acc enter data create({})", "acc update device({})"), "omp": ("omp target enter data map(to: {})",)}
_EXIT = {"acc": ("acc exit data copyout({})",), "omp": ("omp target exit data map(from: {})",)}


def _mover(lines, lang=None):
    def write(name, size, lang):
        if not isinstance(lang, Language):
            return ""
        return "".join(f"{lang.sentinel}{line.format(_range(name, size, lang))}\n" for line in lines)

    if lang is not None:
        return lambda name, size: write(name, size, lang)
    return write


create_data_directive_openacc = _mover(_ENTER["acc"])
create_data_directive_openacc_cxx = _mover(_ENTER["acc"], Cxx())
create_data_directive_openacc_fortran = _mover(_ENTER["acc"], Fortran())
create_data_directive_openmp = _mover(_ENTER["omp"])
create_data_directive_openmp_cxx = _mover(_ENTER["omp"], Cxx())
create_data_directive_openmp_fortran = _mover(_ENTER["omp"], Fortran())
exit_data_directive_openacc = _mover(_EXIT["acc"])
exit_data_directive_openacc_cxx = _mover(_EXIT["acc"], Cxx())
exit_data_directive_openacc_fortran = _mover(_EXIT["acc"], Fortran())
exit_data_directive_openmp = _mover(_EXIT["omp"])
exit_data_directive_openmp_cxx = _mover(_EXIT["omp"], Cxx())
exit_data_directive_openmp_fortran = _mover(_EXIT["omp"], Fortran())


def wrap_data_openacc(name, size, langs):
    """(before, after) for one array."""
    return (create_data_directive_openacc(name, size, langs.language), exit_data_directive_openacc(name, size, langs.language))


def wrap_data_openmp(name, size, langs):
    """(before, after) for one array."""
    return create_data_directive_openmp(name, size, langs.language), exit_data_directive_openmp(name, size, langs.language)


def wrap_data(code, langs, data, preprocessor=None, user_dimensions=None):
    """The code with its arrays moved to the device before it, and back after it."""
    wrap = wrap_data_openacc if is_openacc(langs.directive) else wrap_data_openmp
    moves = [wrap(name, size, langs) for name, size in _arrays(data, preprocessor, user_dimensions)]
    return "\n".join(["".join(before for before, _ in moves), code, "".join(after for _, after in moves)])


def _arrays(data, preprocessor, user_dimensions):
    """(name, size) of what is a pointer."""
    return [(name, parse_size(size, preprocessor, user_dimensions)) for name, (kind, size) in data.items() if "*" in kind]


def add_present_openacc(code, langs, data, preprocessor=None, user_dimensions=None):
    """Marks the arrays of each parallel directive as present on the device; code that moves data itself stays as it is."""
    lines = []
    for line in code.replace("\\\n", "").split("\n"):
        if line_contains_openacc_parallel_directive(line, langs.language):
            if openacc_directive_contains_data_clause(line):
                return code
            clauses = [f" present({_range(name, size, langs.language)}) " for name, size in
                       _arrays(data, preprocessor, user_dimensions)]
            line += "".join(clauses).rstrip()
        lines.append(line)
    return add_new_line("\n".join(lines))


def add_present_openacc_cxx(name, size):
    """The clause for one array."""
    return f" present({_range(name, size, Cxx())}) "


def add_present_openacc_fortran(name, size):
    """The clause for one array."""
    return f" present({_range(name, size, Fortran())}) "


def add_new_line(line):
    """With a line's end at its end."""
    return line if line.endswith("\n") else line + "\n"


# -- sizes -------------------------------------------------------------------------------------------------------------


def find_size_in_preprocessor(dimension, preprocessor):
    """The number that a macro stands for; 0 where none is found."""
    for line in preprocessor:
        words = line.split()
        if len(words) > 2 and words[0] == "#define" and words[1] == dimension and re.fullmatch(r"\d+", words[2]):
            return int(words[2])
    return 0


def parse_size(size, preprocessor=None, dimensions=None):
    """An ArraySize from a number, or from names with commas, looked up among the macros and the user's ``dimensions``."""
    found = ArraySize()
    for dimension in str(size).split(","):
        if re.fullmatch(r"\s*\d+\s*", dimension):
            found.add(int(dimension))
        elif dimensions is not None and dimension in dimensions:
            found.add(int(dimensions[dimension]))
        elif preprocessor is not None:
            found.add(find_size_in_preprocessor(dimension, preprocessor))
    return found


# -- sections ----------------------------------------------------------------------------------------------------------


def correct_kernel(kernel_name, line):
    """Whether a start line is of this section."""
    return kernel_name in line.split()


def _joined(code):
    return code.replace("\\\n", "").split("\n")


def extract_code(start, stop, code, langs, kernel_name=None):
    """The text between lines with ``start`` and ``stop``, by section name; those without one are init_0, init_1 ..."""
    sections, lines, name = {}, [], None
    place = 3 if is_cxx(langs.language) else 2  # of the name among the words of a start line
    for line in _joined(code):
        if name is not None and stop in line:
            sections[name] = "\n".join(lines)
            lines, name = [], None
        elif name is not None:
            lines.append(line)
        elif start in line and (kernel_name is None or correct_kernel(kernel_name, line)):
            words = line.strip().split(" ")
            name = words[place] if len(words) > place else f"init_{sum(s.startswith('init_') for s in sections)}"
    return sections


def _section(word):
    def extract(code, langs):
        found = extract_code(f"{langs.language.sentinel}tuner {word}", langs.language.end_string(), code, langs)
        return "\n".join(found.values()) + "\n" if found else ""

    return extract


extract_initialization_code = _section("initialize")
extract_deinitialization_code = _section("deinitialize")


def extract_directive_code(code, langs, kernel_name=None):
    """The sections to tune, by name."""
    return extract_code(f"{langs.language.sentinel}tuner start", langs.language.end_string(), code, langs, kernel_name)


def extract_directive_data(code, langs, kernel_name=None):
    """By section: {argument: [type, size]}."""
    found = {}
    for line in _joined(code):
        if f"{langs.language.sentinel}tuner start" in line and (kernel_name is None or correct_kernel(kernel_name, line)):
            words = line.split("tuner start", 1)[1].split()
            if words:
                found[words[0]] = {}
            for word in words[1:]:
                name, _, inside = word.partition("(")
                kind, _, size = inside.rstrip(")").partition(":")
                found[words[0]][name] = [kind, size or 0]
    return found


def extract_preprocessor(code):
    """Lines with #include and #define."""
    return [line for line in _joined(code) if "#define" in line or "#include" in line]


def format_argument_fortran(p_type, p_size, p_name):
    """A dummy argument's declaration."""
    kinds = {"float": "real (c_float)", "double": "real (c_double)", "int": "integer (c_int)"}
    kind = kinds.get(p_type.rstrip("*"))
    if kind is None:
        return ""
    return f"{kind}, dimension({p_size}) :: {p_name}" if "*" in p_type else f"{kind}, value :: {p_name}"


#: Of 64 bits: the clock of 32 counts ms.
_FORTRAN_CLOCK = ("integer(c_int64_t):: kt_timing_start\nreal(c_double):: kt_rate\ninteger(c_int64_t):: kt_timing_end\n"
                  "real(c_float):: timing\n")


def extract_directive_signature(code, langs, kernel_name=None):
    """By section: the head of the function that is made of it, which returns its time in ms."""
    heads = {}
    for section, arguments in extract_directive_data(code, langs, kernel_name).items():
        if is_cxx(langs.language):
            typed = ", ".join(f"{kind.replace('*', ' *')} {name}" for name, (kind, _) in arguments.items())
            heads[section] = f"float {section}({typed})"
        else:
            declared = "\n".join(format_argument_fortran(kind, size, name) for name, (kind, size) in arguments.items())
            heads[section] = (f"function {section}({', '.join(arguments)}) result(timing)\nuse iso_c_binding\nimplicit none\n"
                              f"{declared}\n{_FORTRAN_CLOCK}")
    return heads


# -- functions ---------------------------------------------------------------------------------------------------------


def start_timing_cxx(code):
    """The code between two readings of the clock."""
    return "\n".join(["auto kt_timing_start = std::chrono::steady_clock::now();", code,
                      "auto kt_timing_end = std::chrono::steady_clock::now();",
                      "std::chrono::duration<float, std::milli> elapsed_time = kt_timing_end - kt_timing_start;"])


def end_timing_cxx(code):
    """The code, then the time as what the function returns."""
    return f"{code}\nreturn elapsed_time.count();\n"


def wrap_timing_fortran(code):
    """The code between two readings of the clock."""
    return "\n".join(["call system_clock(kt_timing_start, kt_rate)", code, "call system_clock(kt_timing_end)",
                      "timing = real(real(kt_timing_end - kt_timing_start, c_double) / kt_rate * 1e3)"])


def wrap_timing(code, lang):
    """The code, timed."""
    if is_cxx(lang):
        return end_timing_cxx(start_timing_cxx(code))
    return wrap_timing_fortran(code) if is_fortran(lang) else ""


def generate_directive_function(preprocessor, signature, body, langs, data=None, initialization="", deinitialization="",
                                user_dimensions=None):
    """One section as a function that moves its data, times its body without that, and returns ms."""
    cxx = is_cxx(langs.language)
    timed = start_timing_cxx(body) if cxx else wrap_timing_fortran(body)
    if data is not None:
        timed = wrap_data(timed + "\n", langs, data, preprocessor, user_dimensions)
    if cxx:
        timed = end_timing_cxx(timed)
    if data is not None:
        timed = add_present_openacc(timed, langs, data, preprocessor, user_dimensions)
    heading = "\n".join([*preprocessor, *(f"#define {name} {value}" for name, value in (user_dimensions or {}).items())])
    inside = "\n".join([initialization, timed, deinitialization])
    if cxx:
        return f'{heading}\n#include <chrono>\n\nextern "C" {signature} {{\n{inside}\n}}\n'
    name = signature.split(" ")[1].split("(")[0]
    return f"{heading}\n\nmodule kt\nuse iso_c_binding\ncontains\n\n{signature}\n{inside}\nend function {name}\n\nend module kt\n"


def allocate_array(p_type, size):
    """An array for a pointer: random numbers, bytes for types that are the user's."""
    kinds = {"float*": np.float32, "double*": np.float64}
    if p_type == "int*":
        return np.random.randint(1024, size=size, dtype=np.int32)
    return np.random.rand(size).astype(kinds.get(p_type, np.byte))


def allocate_scalar(p_type, size):
    """A scalar with the value ``size``."""
    return {"float": np.float32, "double": np.float64, "int": np.int32}.get(p_type, np.byte)(size)


def allocate_signature_memory(data, preprocessor=None, user_dimensions=None):
    """Arguments of one section."""
    return [(allocate_array if "*" in kind else allocate_scalar)(kind, parse_size(size, preprocessor, user_dimensions).get())
            for kind, size in data.values()]


def process_directives(langs, source, user_dimensions=None):
    """({section: function's text}, {section: its arguments}) of everything marked in ``source``."""
    preprocessor = extract_preprocessor(source)
    bodies, data = extract_directive_code(source, langs), extract_directive_data(source, langs)
    before, after = extract_initialization_code(source, langs), extract_deinitialization_code(source, langs)
    texts, arguments = {}, {}
    for section, head in extract_directive_signature(source, langs).items():
        texts[section] = generate_directive_function(preprocessor, head, bodies[section], langs, data[section], before, after,
                                                     user_dimensions)
        arguments[section] = allocate_signature_memory(data[section], preprocessor, user_dimensions)
    return texts, arguments
