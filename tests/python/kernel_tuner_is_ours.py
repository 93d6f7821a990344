"""A pytest plugin for Kernel Tuner's own tests of its modules: `import kernel_tuner` gives ours, and so do its modules."""

import importlib
import sys

import ergotune.kernel_tuner as ours

OURS, THEIRS = "ergotune.kernel_tuner", "kernel_tuner"
for name in ("searchspace", "accuracy", "util", "interface", "file_utils", "integration", "kernelbuilder", "strategies.common",
             "strategies.wrapper", "utils.directives", "observers.observer"):
    importlib.import_module(f"{OURS}.{name}")
for name, module in list(sys.modules.items()):
    if name == OURS or name.startswith(OURS + "."):
        sys.modules[THEIRS + name[len(OURS):]] = module
assert sys.modules[THEIRS] is ours
