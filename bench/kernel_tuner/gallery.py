#!/usr/bin/env python3
"""Kernel Tuner and ergotune on the same examples, the same card and for the same wall time: which configuration each ends with.

    python3 bench/kernel_tuner/gallery.py --ergotune build/release/ergotune [--device cuda:0] [--seconds 10] [--seeds 2]
                                          [--strategies genetic_algorithm,diff_evo] [convolution dedispersion correlator]

Kernel Tuner gets the kernel's source, constants, parameters, restrictions and inputs from the example's problem file, and no
verification (ergotune verifies each configuration). What both ended with is measured again by ergotune, so that one stopwatch
decides. Needs kernel_tuner and, for CUDA, CuPy (PyOpenCL for --device opencl).
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import time
import tomllib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = {"convolution": "convolution/convolution.toml", "dedispersion": "dedispersion/dedispersion.toml",
            "correlator": "correlator/correlator.toml", "rgb2gray": "rgb2gray/rgb2gray.toml"}
TYPES = {"uint8": np.uint8, "int8": np.int8, "int32": np.int32, "uint32": np.uint32, "float32": np.float32, "float16": np.float16}


class Example:
    """An example's problem file as Kernel Tuner takes it."""

    def __init__(self, name, cuda):
        self.file = ROOT / "examples" / EXAMPLES[name]
        problem = tomllib.loads(self.file.read_text())
        self.constants = dict(problem.get("constants", {}))
        if cuda:
            self.constants |= problem.get("constants_for", {}).get("NVIDIA", {})
        kernel = problem["kernel"]
        self.function, self.launch = kernel["function"], kernel["launch"]
        names = self.constants
        self.parameters = {}
        for parameter, values in problem["parameters"].items():
            values = values.get("values", values.get("range")) if isinstance(values, dict) else values
            self.parameters[parameter] = list(eval(values, dict(names)) if isinstance(values, str) else values)
        rules = [rule["expression"] if isinstance(rule, dict) else rule for rule in problem.get("restrictions", [])]
        self.restrictions = [re.sub(r"[A-Za-z_.]+", lambda word: str(self.number(word[0])), rule) for rule in rules]
        self.source = "".join(f"#define {name} {value}\n" for name, value in self.constants.items()) + self.text(
            self.file.parent / kernel["source"]["cuda" if cuda else "opencl"])
        self.arguments = [self.argument(entry) for entry in kernel["arguments"]]

    def text(self, file):
        """A source with what it includes in its place."""
        folders = (file.parent, ROOT / "examples/common")
        include = lambda match: self.text(next(f / match[1] for f in folders if (f / match[1]).exists()))
        return re.sub(r'#include "([^"]+)"', include, file.read_text())

    def argument(self, entry):
        count, kind = int(eval(str(entry["count"]), dict(self.constants))), TYPES[entry["type"]]
        fill = entry.get("fill", "random")
        if isinstance(fill, dict) and "file" in fill:
            return np.fromfile(self.file.parent / fill["file"], kind)
        if entry.get("access") == "write":
            return np.zeros(count, kind)
        low, high = fill.get("random", [-1, 1]) if isinstance(fill, dict) else ([0, 127] if kind in (np.uint8, np.int8) else [-1, 1])
        return (np.random.default_rng(1).random(count, np.float32) * (high - low) + low).astype(kind)

    def number(self, word):
        """What a word of a restriction stands for, where it is a constant."""
        return 1024 if word == "device.max_threads_per_block" else self.constants.get(word, word)

    def blocks(self, configuration):
        """Blocks of the grid, at most three dimensions."""
        names = self.constants | configuration
        if "grid" in self.launch:
            return tuple(int(eval(str(size), dict(names))) for size in self.launch["grid"])
        sizes = zip(self.launch["global"], self.launch["block"])
        return tuple(-(-int(eval(str(size), dict(names))) // int(eval(str(block), dict(names)))) for size, block in sizes)


def kernel_tuner_finds(example, strategy, seconds, seed, language):
    import kernel_tuner

    random.seed(seed)
    np.random.seed(seed)
    begun = time.monotonic()
    results, _ = kernel_tuner.tune_kernel(
        example.function, example.source, lambda p: example.blocks(dict(p)), example.arguments, example.parameters,
        grid_div_x=[], grid_div_y=[], grid_div_z=[], restrictions=example.restrictions,
        block_size_names=[str(name) for name in example.launch["block"]], lang=language, strategy=strategy,
        strategy_options={"time_limit": seconds}, quiet=True)
    worked = [row for row in results if isinstance(row["time"], float) and row["time"] > 0]
    best = min(worked, key=lambda row: row["time"])
    return {"configuration": {name: best[name] for name in example.parameters}, "evaluated": len(results),
            "seconds": time.monotonic() - begun}


def ergotune(arguments, verb, file, *options):
    command = [arguments.ergotune, verb, str(file), "--device", arguments.device, *options, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measured(arguments, example, configuration):
    """Time (s) and its standard error, or nothing where the configuration does not work."""
    try:
        found = ergotune(arguments, "measure", example.file, "--config", json.dumps(configuration))["quantities"]["time"]
        return found["value"], found["standard_error"]
    except (subprocess.CalledProcessError, KeyError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help=", ".join(EXAMPLES))
    parser.add_argument("--ergotune", default=str(ROOT / "build/release/ergotune"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--strategies", default="genetic_algorithm,diff_evo")
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    cuda = arguments.device.startswith("cuda")
    rows = []
    print("| example | tuner | seed | configurations | s | time of its best |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in arguments.examples or ("convolution", "dedispersion", "correlator"):
        example = Example(name, cuda)
        for seed in range(1, arguments.seeds + 1):
            for tuner in ("ergotune", *arguments.strategies.split(",")):
                try:
                    if tuner == "ergotune":
                        found = ergotune(arguments, "tune", example.file, "--objective", "time", "--budget", f"{arguments.seconds}s",
                                         "--seed", str(seed), "--no-store", "--no-confirm", "--no-early-stop", "-q")
                        found = {"configuration": found["best"]["configuration"], "evaluated": found["evaluated"], "seconds": found["seconds"]}
                    else:
                        found = kernel_tuner_finds(example, tuner, arguments.seconds, seed, "CUPY" if cuda else "OpenCL")
                except Exception as error:
                    print(f"{name}: {tuner}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                    continue
                time_of = measured(arguments, example, found["configuration"])
                rows.append({"example": name, "tuner": tuner, "seed": seed, "time": time_of, **found})
                told = f"{1e3 * time_of[0]:.4g} +- {1.96e3 * time_of[1]:.2g} ms" if time_of else "does not work (wrong or none)"
                print(f"| {name} | {tuner} | {seed} | {found['evaluated']} | {found['seconds']:.1f} | {told} |", flush=True)
                if arguments.output:
                    arguments.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
