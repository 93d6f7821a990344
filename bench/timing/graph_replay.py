#!/usr/bin/env python3
"""Times of nine kernels of 5 us to 10 ms as ergotune reports them, against the pitch of launches within a CUDA graph of the same code
(CuPy): for scripts/gpu-check timing.

    graph_replay.py --ergotune PROGRAM --output FILE

Prints a row for each kernel: reference before and after, reported time with its 95 % interval, their difference; ends with 1 where one
differs by more than 0.5 %. Nothing here sets a clock.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE = r"""
extern "C" __global__ void chain(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = x[i], b = a;
  for (int k = 0; k < STEPS; ++k) { a = a * 0.999f + 0.5f; b = b * 0.998f + 0.25f; }
  y[i] = a + b;
}
extern "C" __global__ void copy(const float* x, float* y) {
  for (int k = 0; k < STEPS; ++k) {
    const int i = (k * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    y[i] = x[i] + 1.0f;
  }
}
extern "C" __global__ void rows(const float* x, float* y) {
  __shared__ float part[256];
  float sum = 0;
  for (int k = 0; k < STEPS; ++k) sum += x[(blockIdx.x * STEPS + k) * blockDim.x + threadIdx.x];
  part[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
"""
BLOCK = 256
# function, blocks, STEPS: about 5, 12, 30, 60, 140, 280, 600 us, 3 and 10 ms on an H200
KERNELS = [("chain", 1024, 400), ("rows", 2048, 16), ("chain", 4096, 1500), ("copy", 65536, 4), ("copy", 65536, 9),
           ("chain", 16384, 4500), ("copy", 65536, 38), ("chain", 65536, 12000), ("chain", 65536, 40000)]


def counts(function, blocks, steps):
    """Elements of x and y."""
    threads = blocks * BLOCK
    return {"chain": (threads, threads), "copy": (threads * steps, threads * steps), "rows": (threads * steps, blocks)}[function]


class Reference:
    """Launches in one graph, long enough that its beginning and the events do not count."""

    def __init__(self, function, blocks, steps):
        import cupy

        self.cupy = cupy
        kernel = cupy.RawModule(code=SOURCE, options=(f"-DSTEPS={steps}",)).get_function(function)
        inputs, outputs = counts(function, blocks, steps)
        self.x, self.y = cupy.random.rand(inputs, dtype=cupy.float32), cupy.zeros(outputs, cupy.float32)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        with self.stream:
            kernel((blocks,), (BLOCK,), (self.x, self.y))
            self.stream.synchronize()
            once = self.seconds(lambda: kernel((blocks,), (BLOCK,), (self.x, self.y)))
            self.launches = max(4, min(4000, int(0.03 / once)))
            self.stream.begin_capture()
            for _ in range(self.launches):
                kernel((blocks,), (BLOCK,), (self.x, self.y))
            self.graph = self.stream.end_capture()

    def seconds(self, work):
        begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        begin.record(self.stream)
        work()
        end.record(self.stream)
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(begin, end) * 1e-3

    def measure(self):
        self.graph.launch(self.stream)
        samples = sorted(self.seconds(lambda: self.graph.launch(self.stream)) / self.launches for _ in range(9))
        return samples[4]


def reported(program, folder, function, blocks, steps, cold=False):
    inputs, outputs = counts(function, blocks, steps)
    problem = folder / "problem.toml"
    problem.write_text(f"""
name = "{function}"
[constants]
STEPS = {steps}
[parameters]
BLOCK = [{BLOCK}]
[kernel]
function = "{function}"
launch = {{ grid = [{blocks}], block = ["BLOCK"] }}
arguments = [
  {{ name = "x", type = "float32", count = {inputs} }},
  {{ name = "y", type = "float32", count = {outputs}, access = "write" }},
]
[kernel.source.cuda]
text = '''{SOURCE}'''
""")
    done = subprocess.run([program, "measure", str(problem), "--device", "cuda:0", "--config", f'{{"BLOCK": {BLOCK}}}', "--precision", "0.003", "--json"],
                          capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ergotune", required=True)
    parser.add_argument("--output")
    options = parser.parse_args()
    rows, good = [], True
    with tempfile.TemporaryDirectory() as name:
        for function, blocks, steps in KERNELS:
            reference = Reference(function, blocks, steps)
            before = reference.measure()
            document = reported(options.ergotune, pathlib.Path(name), function, blocks, steps)
            after = reference.measure()
            time = document["quantities"].get("time")
            if time is None:
                sys.exit(f"{function}: {document['status']} {document.get('message', '')}")
            truth = (before + after) / 2
            row = {"kernel": f"{function} x{blocks} x{steps}", "graph_us": [before * 1e6, after * 1e6], "reported_us": time["value"] * 1e6,
                   "half_width_us": 1e6 * time["half_width"], "percent": 100 * (time["value"] / truth - 1), "method": time["method"],
                   "status": document["status"]}
            row["inside"] = abs(row["reported_us"] - truth * 1e6) <= row["half_width_us"]
            good = good and abs(row["percent"]) <= 0.5
            rows.append(row)
            print(f"{row['kernel']:24} graph {before * 1e6:10.3f} {after * 1e6:10.3f} us, reported {row['reported_us']:10.3f} +- "
                  f"{row['half_width_us']:.3f} us, {row['percent']:+.2f} %, {'in' if row['inside'] else 'out'}side; {row['method']}", flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(rows, indent=1))
    sys.exit(not good)


if __name__ == "__main__":
    main()
