"""What tuning a callable costs beyond compiling and running it: ergotune.tune_callable against a loop of events.

    python3 bench/callables/overhead.py [--framework cupy|numba|pycuda|triton|numpy] [--configurations FEW MANY]

Both run the same configurations in this process. The loop launches each 13 times: once to compile, twice to warm up, and ten times between
events. ergotune launches as often, or more where a launch is shorter than 0.4 ms, since its samples last that long and the first of them is not
timed then. What each needs beside its launches is therefore compared: its time less the number of launches times the time of a launch. What
a session needs once (the overhead of events, for example) is separated by sessions of two sizes. Verification, confirmation and store are off.
"""

import argparse
import re
import statistics
import time

LAUNCHES = 10
SIZE = 1 << 22
ROUNDS = 32
SAXPY = r"""
extern "C" __global__ void saxpy(const float* x, float* y, int n, int rounds) {
  for (int r = 0; r < rounds; ++r)
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = r * x[i];
}"""


def cupy_case():
    import cupy

    kernel = cupy.RawKernel(SAXPY, "saxpy")
    kernel.compile()
    x = cupy.random.random(SIZE, dtype=cupy.float32)

    def make(x, y, block, blocks):
        return lambda: kernel((blocks,), (block,), (x, y, cupy.int32(SIZE), cupy.int32(ROUNDS)))

    event = cupy.cuda.Event
    return make, {"x": x, "y": cupy.zeros_like(x)}, event, lambda one, other: 1e-3 * cupy.cuda.get_elapsed_time(one, other), \
        cupy.cuda.Device().synchronize


def numba_case():
    import numpy as np
    from numba import cuda

    @cuda.jit
    def kernel(x, y):
        for r in range(ROUNDS):
            for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
                y[i] = r * x[i]

    x = cuda.to_device(np.ones(SIZE, dtype=np.float32))
    y = cuda.device_array_like(x)
    kernel[8, 64](x, y)
    return (lambda x, y, block, blocks: lambda: kernel[blocks, block](x, y)), {"x": x, "y": y}, cuda.event, \
        lambda one, other: 1e-3 * one.elapsed_time(other), cuda.synchronize


def triton_case():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, y, n, rounds, BLOCK: tl.constexpr):
        for r in range(rounds):
            for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
                i = start + tl.arange(0, BLOCK)
                tl.store(y + i, r * tl.load(x + i, mask=i < n), mask=i < n)

    x = torch.ones(SIZE, device="cuda")
    y = torch.zeros_like(x)
    kernel[(8,)](x, y, SIZE, ROUNDS, BLOCK=1024)
    return (lambda x, y, block, blocks: lambda: kernel[(blocks,)](x, y, SIZE, ROUNDS, BLOCK=1024)), {"x": x, "y": y}, \
        lambda: torch.cuda.Event(enable_timing=True), lambda one, other: 1e-3 * one.elapsed_time(other), torch.cuda.synchronize


def pycuda_case():
    import numpy as np
    import pycuda.autoprimaryctx
    import pycuda.driver as driver
    import pycuda.gpuarray as gpuarray
    from pycuda.compiler import SourceModule

    kernel = SourceModule(SAXPY, no_extern_c=True).get_function("saxpy")
    x = gpuarray.to_gpu(np.ones(SIZE, dtype=np.float32))

    def make(x, y, block, blocks):
        return lambda: kernel(x, y, np.int32(SIZE), np.int32(ROUNDS), block=(block, 1, 1), grid=(blocks, 1))

    return make, {"x": x, "y": gpuarray.zeros_like(x)}, driver.Event, lambda one, other: 1e-3 * one.time_till(other), driver.Context.synchronize


def numpy_case():
    """On the CPU: a clock is read in the place of an event."""
    import numpy as np

    x = np.ones(SIZE // 8, dtype=np.float32)

    class Event:
        def record(self):
            self.seconds = time.perf_counter()

    def make(x, y, block, blocks):
        return lambda: np.multiply(x, block, out=y)

    return make, {"x": x, "y": np.zeros_like(x)}, Event, lambda one, other: other.seconds - one.seconds, lambda: None


CASES = {"cupy": cupy_case, "numba": numba_case, "pycuda": pycuda_case, "triton": triton_case, "numpy": numpy_case}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=sorted(CASES), default="cupy")
    parser.add_argument("--configurations", type=int, nargs=2, default=[40, 200], help="the costs of two sessions give that of a configuration")
    options = parser.parse_args()
    make, arguments, event, elapsed, synchronise = CASES[options.framework]()

    def space_of(count):
        return {"block": [64, 128, 256, 512], "blocks": [256 + 2 * i for i in range(count // 4)]}

    def loop(count):
        launched = 0.0  # s of all launches
        for configuration in ({"block": block, "blocks": blocks} for block in space_of(count)["block"] for blocks in space_of(count)["blocks"]):
            launch = make(**arguments, **configuration)
            for _ in range(3):
                launch()
                synchronise()
            marks = [event() for _ in range(LAUNCHES + 1)]
            marks[0].record()
            for mark in marks[1:]:
                launch()
                mark.record()
            synchronise()
            seconds = statistics.median(elapsed(one, other) for one, other in zip(marks, marks[1:]))
            launched += (LAUNCHES + 3) * seconds
        return launched

    def ours(count):
        import ergotune

        result = ergotune.tune_callable(
            make, space_of(count), arguments=arguments, in_process=True, verify=False, confirm=False, strategy="brute_force", early_stop=False,
            device="host" if options.framework == "numpy" else None, min_repeats=LAUNCHES, max_repeats=LAUNCHES, warm_up=1, max_seconds=10, quiet=True)
        times = [measurement["quantities"]["time"] for measurement in result.measurements]
        each = [re.search(r"(\d+) launches each", time["method"]) for time in times]
        return sum((3 + (time["n"] + 1) * int(found.group(1)) if found else 3 + time["n"]) * time["value"] for time, found in zip(times, each))

    def beside(tool, count):
        began = time.perf_counter()
        launched = tool(count)
        return 1e3 * (time.perf_counter() - began - launched)

    few, many = options.configurations
    differences = []
    for number in range(6):
        costs = {tool.__name__: [beside(tool, count) for count in (few, many)] for tool in (loop, ours)}
        each = {name: (cost[1] - cost[0]) / (many - few) for name, cost in costs.items()}
        print(f"{options.framework}, round {number + 1}: beside its launches the loop needs {each['loop']:.3f} ms a configuration, ergotune "
              f"{each['ours']:.3f} ms and {costs['ours'][0] - few * each['ours']:.0f} ms a session")
        if number > 0:  # the first compiles, and imports
            differences.append(each["ours"] - each["loop"])
    print(f"{options.framework}: {few} and {many} configurations, median difference {statistics.median(differences):.3f} ms a configuration")


if __name__ == "__main__":
    main()
