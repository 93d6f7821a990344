"""Reads what ergotune exported with Kernel Tuner itself, and gives back what Kernel Tuner recorded.

Called by kernel_tuner_formats_test.cpp: kernel_tuner_formats.py ERGOTUNE PROBLEM FOLDER. Exits with 0 when everything
agrees; prints what does not.
"""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy
from kernel_tuner import tune_kernel
from kernel_tuner.file_utils import output_file_schema

ERGOTUNE, PROBLEM, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
SOURCE = """
#include <chrono>
extern "C" float vector_add(float* c, const float* a, const float* b, int n) {
  auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < block_size; ++r)
    for (int i = 0; i < n; ++i) c[i] = a[i] + b[i] * unroll;
  return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
}
"""


def ergotune(*arguments):
    result = subprocess.run([ERGOTUNE, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"ergotune {' '.join(map(str, arguments))}: {result.stderr}")
    return result.stdout


def best_of_ergotune(source):
    return json.loads(ergotune("show", source, "--json"))["best"]


def check(condition, words):
    if not condition:
        sys.exit(words)


def tuned_here_read_there():
    store = FOLDER / "results.db"
    ergotune("tune", PROBLEM, "--device", "host", "--strategy", "brute_force", "--store", store, "--quiet", "--json")
    cache = FOLDER / "cache.json"
    ergotune("export", store, "--format", "kt", "-o", cache)
    recorded = json.loads(cache.read_text())
    results, _ = tune_kernel(
        recorded["kernel_name"], SOURCE, 1, [numpy.zeros(1, numpy.float32)], recorded["tune_params"], lang="C",
        simulation_mode=True, cache=str(cache), strategy="brute_force", quiet=True, verbose=False)
    check(len(results) == len(recorded["cache"]), "Kernel Tuner simulated another number of configurations")
    valid = [result for result in results if "__error__" not in result]
    check(valid, "Kernel Tuner found no valid configuration in the exported cache")
    # the confirmed winner, which need not be the one of the lowest time
    here = best_of_ergotune(store)
    there = next((result for result in valid if result.items() >= here["configuration"].items()), None)
    check(there, f"Kernel Tuner has no time of the best, {here['configuration']}")
    check(abs(there["time"] / 1e3 / here["quantities"]["time"]["value"] - 1) < 1e-9, "the best times differ")

    ergotune("export", store, "--format", "t4", "-o", FOLDER / "results.T4.json")
    jsonschema.validate(json.loads((FOLDER / "results.T4.json").read_text()), output_file_schema("results")[1])


def tuned_there_read_here():
    cache = FOLDER / "theirs.json"
    n = numpy.int32(20000)
    a, b, c = (numpy.random.randn(n).astype(numpy.float32) for _ in range(3))
    results, _ = tune_kernel(
        "vector_add", SOURCE, int(n), [c, a, b, n], {"block_size": [4, 1, 8], "unroll": [1, 2]}, lang="C",
        cache=str(cache), quiet=True, verbose=False)
    there = min(results, key=lambda result: result["time"])
    here = best_of_ergotune(cache)
    for name, value in here["configuration"].items():
        check(there[name] == value, f"best {name}: {value} here, {there[name]} there")
    check(abs(there["time"] / 1e3 / here["quantities"]["time"]["value"] - 1) < 1e-9, "the best times differ")
    # a cache in use has no end
    text = cache.read_text()
    (FOLDER / "open.json").write_text(text[: text.rindex('"', 0, text.rindex('"time"'))])
    rows = json.loads(ergotune("show", FOLDER / "open.json", "--json"))["rows"]
    check(rows == len(results) - 1, f"{rows} rows of an open cache of {len(results)}, one of them cut")
    imported = FOLDER / "imported.db"
    ergotune("import", cache, "--store", imported)
    check(best_of_ergotune(imported)["configuration"] == here["configuration"], "the import has another best")
    # and back to them
    ergotune("export", imported, "--format", "t4", "-o", FOLDER / "theirs.T4.json")
    jsonschema.validate(json.loads((FOLDER / "theirs.T4.json").read_text()), output_file_schema("results")[1])


tuned_here_read_there()
tuned_there_read_here()
