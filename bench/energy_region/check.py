#!/usr/bin/env python3
"""Energy of regions against the GPU's own counter, the cost of a region, and how much measuring slows a program: scripts/gpu-check regions.

    check.py --ergotune PROGRAM --output FILE [regions] [cost] [slowdown]

regions: 100 regions of 50 us to 5 s. The reference is the counter itself, read by this script through NVML: half of the regions lie inside of
a load that goes on before and after them (the load's mean power over a second around the region, times its time), half begin and end with the
GPU idle (the counter over the region and a second around it, less the idle power over the rest). Intervals and bounds have to hold in 95 %.
cost: seconds that the beginning and the end of a region take. At most 20 us each.
slowdown: one program runs long and short kernels all the time. "ergotune energy", and then "ergotune program", measures beside it and is stopped and
continued every 0.3 s (SIGSTOP, SIGCONT; off on on off, and so on), so that drift cancels. The upper end of the 95 % interval of the median ratio
of times has to be at most 1.003; beside a process that does nothing (sleep) the ratio shows what the comparison resolves.

Needs CuPy and the package in PYTHONPATH; the slowdown nvcc alone. Nothing here sets a clock or a limit.
"""

import argparse
import ctypes
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = r"""
extern "C" __global__ void spin(float* y, int steps) {
  float a = threadIdx.x, b = a;
  for (int k = 0; k < steps; ++k) { a = a * 0.999f + 0.5f; b = b * 0.998f + 0.25f; }
  if (a + b == 12345.0f) y[0] = a;
}
"""

# What is slowed down: a native program, since the interpreter's time varies by more than what is sought. A row has the times at which its
# parts begin and end: one long kernel on the whole GPU; kernels of some 50 us with the queue kept full; the same with each launch waited for, as
# by a program that calls its driver all the time.
PROGRAM = r"""
#include <cstdio>
#include <ctime>
#include <unistd.h>
#include <vector>
__global__ void chain(float* y, int n) {
  float a = threadIdx.x;
  for (int k = 0; k < n; ++k) a = a * 0.999f + 0.5f;
  if (a == 12345.0f) y[0] = a;
}
double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(int, char** arguments) {
  struct Row { double times[4]; };
  std::vector<Row> rows;
  const int steps = 20000, launches = 100;
  while (access(arguments[1], F_OK) != 0) {
    Row row;
    row.times[0] = now();
    chain<<<528, 256>>>(nullptr, 50 * steps);
    cudaDeviceSynchronize();
    row.times[1] = now();
    for (int i = 0; i < launches; ++i) chain<<<1, 32>>>(nullptr, steps);
    cudaDeviceSynchronize();
    row.times[2] = now();
    for (int i = 0; i < launches; ++i) { chain<<<1, 32>>>(nullptr, steps); cudaDeviceSynchronize(); }
    row.times[3] = now();
    rows.push_back(row);
  }
  FILE* file = fopen(arguments[2], "w");
  for (const Row& row : rows) fprintf(file, "%.9f %.9f %.9f %.9f\n", row.times[0], row.times[1], row.times[2], row.times[3]);
  return fclose(file) != 0 || cudaGetLastError() != cudaSuccess;
}
"""
PARTS = ("long kernels", "queue full", "each launch waited for")


class Counter:
    """The GPU's energy counter, J, read every 5 ms by a thread from start() to stop(), as (time, J)."""

    def __init__(self):
        self._nvml = ctypes.CDLL("libnvidia-ml.so.1")
        assert self._nvml.nvmlInit_v2() == 0
        self._handle = ctypes.c_void_p()
        assert self._nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._handle)) == 0

    def joules(self):
        value = ctypes.c_ulonglong()
        assert self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle, ctypes.byref(value)) == 0
        return value.value / 1000

    def start(self):
        self._readings, self._stop = [], threading.Event()

        def loop():
            while not self._stop.is_set():
                value = self.joules()
                if not self._readings or value != self._readings[-1][1]:
                    self._readings.append((time.monotonic(), value))  # an update
                time.sleep(0.005)
        self._thread = threading.Thread(target=loop)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()
        return self._readings[1:]  # when the first value came is not known


def between(updates, start, end):
    """J and s from the last update before a time to the first one after another."""
    first = max((u for u in updates if u[0] <= start), default=updates[0])
    last = min((u for u in updates if u[0] >= end), default=updates[-1])
    return last[1] - first[1], first[0], last[0]


class Load:
    """Work for the whole GPU in pieces of about 50 us."""

    def __init__(self):
        import cupy
        self.cupy = cupy
        self._kernel = cupy.RawKernel(SOURCE, "spin")
        self._y = cupy.zeros(4, cupy.float32)
        self._blocks = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]
        self._steps = 1000
        self.seconds(10)
        self._steps = max(100, int(self._steps * 50e-6 / (self.seconds(2000) / 2000)))
        self.piece = self.seconds(2000) / 2000

    def queue(self, pieces):
        import numpy
        for _ in range(pieces):
            self._kernel((self._blocks,), (256,), (self._y, numpy.int32(self._steps)))

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def seconds(self, pieces):
        self.wait()
        start = time.perf_counter()
        self.queue(pieces)
        self.wait()
        return time.perf_counter() - start

    def run_until(self, deadline):
        """Keeps the GPU busy until a time, its queue short."""
        while time.monotonic() < deadline:
            self.queue(40)
            self.wait()


def region_inside(ergotune, monitor, load, counter, seconds):
    """A region of a load that goes on: its reference, and 2 % for how much the load's power moves."""
    counter.start()
    load.run_until(time.monotonic() + 0.8)
    with monitor.region("inside") as region:
        start = time.monotonic()
        if seconds < 0.002:
            load.queue(max(1, round(seconds / load.piece)))
            load.wait()
        else:
            load.run_until(start + seconds)
        end = time.monotonic()
    load.run_until(time.monotonic() + 0.6)
    updates = counter.stop()
    joules, first, last = between(updates, start - 0.4, end + 0.3)
    reference = joules / (last - first) * (end - start)
    return region.energy, reference, 0.02 * reference


def region_apart(ergotune, monitor, load, counter, seconds):
    """A region with the GPU idle before and after: its reference, and what idle power leaves open."""
    counter.start()
    time.sleep(1.2)
    with monitor.region("apart") as region:
        start = time.monotonic()
        if seconds < 0.002:
            load.queue(max(1, round(seconds / load.piece)))
            load.wait()
        else:
            load.run_until(start + seconds)
        end = time.monotonic()
    time.sleep(0.8)
    updates = counter.stop()
    joules, first, last = between(updates, start - 0.15, end + 0.35)
    before, idle_from, idle_to = between(updates, start - 1.0, start - 0.3)
    after, late_from, late_to = between(updates, end + 0.35, end + 0.7)
    low, high = sorted((before / (idle_to - idle_from), after / (late_to - late_from)))
    rest = (last - first) - (end - start)
    reference = joules - 0.5 * (low + high) * rest
    return region.energy, reference, 0.5 * (high - low) * rest + 1


def check_regions(arguments):
    import ergotune
    load, counter = Load(), Counter()
    monitor = ergotune.EnergyMonitor("nvml:0")
    rows = []
    count = arguments.regions
    for i in range(count):
        seconds = 50e-6 * 1e5 ** ((i // 2) / max(1, count // 2 - 1))
        measure = region_inside if i % 2 else region_apart
        energy, reference, unsure = measure(ergotune, monitor, load, counter, seconds)
        error = None if energy.joules is None else abs(energy.joules - reference)
        rows.append({
            "kind": "inside" if i % 2 else "apart", "seconds": energy.seconds, "joules": energy.joules, "half_width": energy.half_width,
            "at_most": energy.at_most, "reference": reference, "reference_unsure": unsure,
            "interval_holds": None if error is None else error <= energy.half_width,
            "interval_holds_with_reference": None if error is None else error <= energy.half_width + unsure,
            "bound_holds": energy.at_most is not None and energy.at_most >= reference - unsure,
        })
        shown = "-" if energy.joules is None else f"{energy.joules:.4g} +- {energy.half_width:.3g}"
        print(f"{rows[-1]['kind']:6} {energy.seconds:9.6f} s  {shown:>20} J  at most {energy.at_most:.4g} J  reference {reference:.4g} J", flush=True)
    resolved = [row for row in rows if row["joules"] is not None]
    shares = {name: sum(bool(row[name]) for row in rows if row[name] is not None) for name in ("interval_holds", "interval_holds_with_reference", "bound_holds")}
    held = sum(row["bound_holds"] and row["interval_holds_with_reference"] is not False for row in rows)
    print(f"intervals: {shares['interval_holds']} of {len(resolved)} hold ({shares['interval_holds_with_reference']} with what the reference "
          f"leaves open); bounds: {shares['bound_holds']} of {len(rows)}; both: {held} of {len(rows)}")
    return {"rows": rows, "resolved": len(resolved), "held": held, **shares}, held >= 0.95 * len(rows)


def check_cost(arguments):
    import ergotune
    monitor = ergotune.EnergyMonitor("nvml:0")
    begins, ends = [], []
    for _ in range(5000):
        region = monitor.region("cost")
        start = time.perf_counter()
        region.__enter__()
        middle = time.perf_counter()
        region.__exit__(None, None, None)
        ends.append(time.perf_counter() - middle)
        begins.append(middle - start)
        time.sleep(20e-6)
    found = {}
    for name, values in (("begin", begins), ("end", ends)):
        values.sort()
        found[name] = {"median_us": 1e6 * statistics.median(values), "p99_us": 1e6 * values[int(0.99 * len(values))], "most_us": 1e6 * values[-1]}
        print(f"{name}: median {found[name]['median_us']:.2f} us, 99 % below {found[name]['p99_us']:.2f} us, most {found[name]['most_us']:.0f} us")
    return found, all(one["p99_us"] <= 20 for one in found.values())


def median_interval(values):
    """The median with its interval of at least 95 %, by order statistics."""
    values, n, below = sorted(values), len(values), 0.0
    for k in range(n // 2):
        below += math.comb(n, k) / 2 ** n
        if below > 0.025:
            break
    return statistics.median(values), values[max(0, k - 1)], values[n - max(1, k)]


def slices_beside(command, folder, quadruples, seconds):
    """Runs what measures, and pauses it in every other slice: (measuring, from, to), in the order off on on off, on off off on."""
    started = folder / "started"
    process = subprocess.Popen([*command, "sh", "-c", f"touch {started}; exec sleep 1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    slices = []
    try:
        while not started.exists():
            assert process.poll() is None, f"{command} has ended"
            time.sleep(0.05)
        started.unlink()
        time.sleep(0.5)
        for turn in range(quadruples):
            for measuring in (0, 1, 1, 0) if turn % 2 else (1, 0, 0, 1):
                os.kill(process.pid, signal.SIGCONT if measuring else signal.SIGSTOP)
                start = time.monotonic()
                time.sleep(seconds)
                slices.append((measuring, start, time.monotonic()))
        assert process.poll() is None, f"{command} has ended"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return slices


def ratios_of(slices, rows, part):
    """For four slices each: mean time of a part while measured over that while not, of rows that lie within a slice."""
    means = []
    for measuring, start, end in slices:
        within = [row[part + 1] - row[part] for row in rows if row[0] >= start + 0.01 and row[3] <= end]
        means.append((measuring, statistics.fmean(within)))
    sums = [[sum(mean for on, mean in means[i:i + 4] if on == measuring) for measuring in (0, 1)] for i in range(0, len(means), 4)]
    return [on / off for off, on in sums]


def check_slowdown(arguments):
    ways = {
        "nothing": ["env"],
        "energy": [arguments.ergotune, "energy", "--sensor", arguments.sensor, "--"],
        "program": [arguments.ergotune, "program", "--sensor", arguments.sensor, "--no-store", "-q", "--"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "program.cu").write_text(PROGRAM)
        subprocess.run(["nvcc", "-O3", "-arch=native", "-o", str(folder / "program"), str(folder / "program.cu")], check=True)
        program = subprocess.Popen([str(folder / "program"), str(folder / "end"), str(folder / "times")])
        time.sleep(1)  # it warms up
        slices = {way: slices_beside(command, folder, max(2, arguments.quadruples // (1 if way != "nothing" else 2)), arguments.slice)
                  for way, command in ways.items()}
        (folder / "end").write_text("")
        assert program.wait() == 0
        rows = [tuple(map(float, line.split())) for line in (folder / "times").read_text().splitlines()]
    good, found = True, {}
    for part, name in enumerate(PARTS):
        found[name] = {"seconds": statistics.median(row[part + 1] - row[part] for row in rows)}
        for way in ways:
            ratios = ratios_of(slices[way], rows, part)
            middle, low, high = median_interval(ratios)
            found[name][way] = {"ratio": middle, "low": low, "high": high, "ratios": ratios}
            print(f"{name} ({1e3 * found[name]['seconds']:.2f} ms), beside {way}: {100 * (middle - 1):+.3f} % ({100 * (low - 1):+.3f} to "
                  f"{100 * (high - 1):+.3f} %) of the time while that is stopped, n = {len(ratios)}")
            good = good and (way == "nothing" or high <= 1.003)
    return found, good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ergotune", default="ergotune")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--regions", type=int, default=100)
    parser.add_argument("--sensor", default="nvml:0")
    parser.add_argument("--quadruples", type=int, default=18, help="slices / 4 beside each tool")
    parser.add_argument("--slice", type=float, default=0.3, help="seconds")
    parser.add_argument("parts", nargs="*", default=["regions", "cost", "slowdown"])
    arguments = parser.parse_args()
    arguments.ergotune = str(pathlib.Path(arguments.ergotune).resolve())
    checks = {"regions": check_regions, "cost": check_cost, "slowdown": check_slowdown}
    document, good = {}, True
    for part in arguments.parts:
        document[part], well = checks[part](arguments)
        print(f"{part}: {'as it should be' if well else 'NOT AS IT SHOULD BE'}", flush=True)
        arguments.output.write_text(json.dumps(document, indent=1))
        good = good and well
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
