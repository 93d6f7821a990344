import kernels


class SourceModule:
    def __init__(self, source, options=()):
        self._given = source, options

    def get_function(self, name):
        return _Function(kernels.compiled(self._given[0], name, self._given[1]))


class _Function:
    num_regs, local_size_bytes, shared_size_bytes = 16, 0, 0

    def __init__(self, run):
        self._run = run

    def __call__(self, *arguments, block, grid):
        self._run(grid[0] * block[0], *arguments)
