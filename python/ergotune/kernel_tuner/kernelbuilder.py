"""A kernel that is called from Python."""

import numpy as np

from .integration import TuneResults
from .interface import run_kernel


class PythonKernel:
    """A kernel with its parameters, called as a function: ``PythonKernel(name, source, n, arguments, params)(*arguments)``.

    It is compiled at each call unless ergotune's compile cache knows it. In an application use ergotune's launcher.

    Args:
        inputs, outputs: a bool per argument: whether its value at the call counts, and whether it is returned.
        results_file: where parameters are looked up for this device and problem size (``store_results``).
        Others: as those of run_kernel.
    """

    def __init__(self, kernel_name, kernel_string, problem_size, arguments, params=None, inputs=None, outputs=None, device=0,
                 platform=0, block_size_names=None, grid_div_x=None, grid_div_y=None, grid_div_z=None, verbose=True, lang=None,
                 results_file=None):
        self.params = dict(params or {})
        if results_file:
            self.params.update(TuneResults(results_file).get_best_config(_device_name(kernel_string, lang, device, platform),
                                                                         problem_size))
        self.arguments = list(arguments)
        self.inputs = inputs or [True] * len(self.arguments)
        self.outputs = outputs or [True] * len(self.arguments)
        self._call = {"kernel_name": kernel_name, "kernel_source": kernel_string, "problem_size": problem_size,
                      "device": device, "platform": platform, "block_size_names": block_size_names, "grid_div_x": grid_div_x,
                      "grid_div_y": grid_div_y, "grid_div_z": grid_div_z, "lang": lang}

    def run_kernel(self, args):
        """Runs it; gives the output arrays."""
        given = [new if is_input else old for new, old, is_input in zip(args, self.arguments, self.inputs)]
        left = run_kernel(arguments=given, params=self.params, quiet=True, **self._call)
        return [array for array, is_output in zip(left, self.outputs) if is_output and isinstance(array, np.ndarray)]

    def __call__(self, *args):
        return self.run_kernel(args)


def _device_name(source, lang, device, platform):
    from .._session import describe_device
    from ._problem import language_of, read_source
    from .interface import _device_id

    text, file, _ = read_source(source)
    return describe_device(_device_id(language_of(lang, str(text), file), device, platform))[2]
