"""Kernels of the examples of docs/python-kernels.md, as NumPy does them: the fake frameworks have no compiler."""

import re


def compiled(code, name, options):
    """function(threads, *arguments). Raises RuntimeError for what a compiler would refuse."""
    defines = dict(option[2:].split("=") for option in options)
    missing = set(re.findall(r"\b[A-Z][A-Z_]+\b", re.sub(r"//.*", "", code))) - set(defines)
    if not re.search(rf"\b{name}\(", code) or missing:
        raise RuntimeError(f"{name}: not defined, or without {sorted(missing)}")
    per_thread = int(defines["PER_THREAD"])

    def saxpy(threads, a, x, y, n):
        done = slice(min(int(n), threads * per_thread))
        y[done] += a * x[done]

    def twice(threads, x, y, n):
        done = slice(min(int(n), threads * per_thread))
        y[done] = 2 * x[done]

    return {"saxpy": saxpy, "twice": twice}[name]
