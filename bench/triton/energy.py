"""Least energy by ergotune.triton.autotune against an exhaustive search by the GPU's own counter.

    python3 bench/triton/energy.py [--seconds 2] [--seeds 3] [--output FILE]

Every configuration of the tutorials' matrix product runs for so many seconds, those within 5 % of the least twice more. Power is the difference of NVML's
energy counter between two of its updates over their distance, and the energy of a launch is power times the launch's time in the same loop.
Then ergotune chooses with each seed; its choices are rated by the exhaustive table.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path


class Counter:
    def __init__(self):
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.read = lambda: 1e-3 * pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)  # J

    def update(self, work):
        """(time, J) of the next update, while work() keeps the GPU busy."""
        before = self.read()
        while True:
            work()
            now = self.read()
            if now != before:
                return time.perf_counter(), now


class Busy:
    """Each call queues launches behind those that run, and waits for the ones before: the GPU never waits."""

    def __init__(self, launch):
        import torch

        self._launch, self._event = launch, lambda: torch.cuda.Event(enable_timing=True)
        self.marks = [self._mark()]

    def _mark(self):
        event = self._event()
        event.record()
        return event

    def __call__(self):
        for _ in range(10):
            self._launch()
        self.marks.append(self._mark())
        self.marks[-2].synchronize()

    def seconds(self, first):
        """Of a launch, since the mark."""
        return 1e-3 * self.marks[first].elapsed_time(self.marks[-2]) / (10 * (len(self.marks) - 2 - first))


def energy_of(launch, counter, seconds):
    """(J, s) of one launch."""
    import torch

    work = Busy(launch)
    began = time.perf_counter()
    while time.perf_counter() - began < 0.4:  # until power is steady
        work()
    first, mark = counter.update(work), len(work.marks) - 1
    while time.perf_counter() - first[0] < seconds:
        work()
    last, each = counter.update(work), work.seconds(mark)
    torch.cuda.synchronize()
    return (last[1] - first[1]) / (last[0] - first[0]) * each, each


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("triton-energy.json"))
    options = parser.parse_args()
    os.environ["ERGOTUNE_DATA_DIR"] = tempfile.mkdtemp(prefix="ergotune-energy-")
    import torch
    from kernels import Case

    import ergotune.triton

    case, counter = Case("matmul", False, "cuda"), Counter()
    def runs(config):
        try:
            case.kernel[case.grid](*case.arguments, **config.all_kwargs())
            return True
        except Exception as error:  # more shared memory than there is
            return print(f"fails: {config}: {type(error).__name__}", flush=True)

    def exhaustive(configs):
        for config in configs:
            table[str(config)].append(energy_of(lambda: case.kernel[case.grid](*case.arguments, **config.all_kwargs()), counter, options.seconds))

    working = [config for config in case.configs if runs(config)]
    table = {str(config): [] for config in working}
    document = {"device": torch.cuda.get_device_name(0), "chosen": []}
    exhaustive(working)
    least = min(found[0][0] for found in table.values())
    near = [config for config in working if table[str(config)][0][0] < 1.05 * least]
    exhaustive(near[::-1])
    exhaustive(near)
    means = {name: sum(joules for joules, _ in found) / len(found) for name, found in table.items()}
    least = min(means.values())
    for name, joules in sorted(means.items(), key=lambda item: item[1]):
        print(f"{1e3 * joules:8.2f} mJ {100 * (joules / least - 1):6.2f} %  passes {[round(1e3 * j, 2) for j, _ in table[name]]} "
              f"{1e6 * table[name][0][1]:.1f} us  {name}", flush=True)
    for seed in range(1, options.seeds + 1):
        began = time.perf_counter()
        kernel = ergotune.triton.autotune(case.configs, key=case.key, objective="energy", seed=seed, cache_results=False)(case.kernel)
        kernel[case.grid](*case.arguments)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        chosen = str(kernel.best_config)
        best = kernel.result.document["best"]
        document["chosen"].append({"seed": seed, "configuration": chosen, "joules": best["objective"], "half_width": best.get("half_width"),
                                   "above_least": means[chosen] / least - 1, "seconds": seconds})
        print(f"seed {seed}: {seconds:.1f} s, {1e3 * best['objective']:.2f} mJ, {100 * (means[chosen] / least - 1):.2f} % above the least  {chosen}",
              flush=True)
    document["exhaustive"] = {name: {"joules": means[name], "passes": found} for name, found in table.items()}
    options.output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
