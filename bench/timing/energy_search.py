#!/usr/bin/env python3
"""A short search by energy where a search by time has stood before: does it end at more energy than the fastest known needs?

For each problem: a search by time, one by energy with `--prior auto` in the same store, then the two winners measured in turns."""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def as_json(*command):
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}:\n{run.stderr}")
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ergotune", default="ergotune")
    parser.add_argument("--output", default="energy-search.json")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("problems", nargs="*", default=["convolution/convolution", "correlator/correlator", "softmax/softmax", "tensor_gemm/hopper_gemm", "layer_norm/layer_norm", "sgemm/sgemm"])
    parser.add_argument("--time-budget", default="10s", help="of the search by time")
    parser.add_argument("--budget", default="10s", help="of the search by energy")
    options = parser.parse_args()
    rows = []
    for name in options.problems:
        problem = EXAMPLES / f"{name}.toml"
        with tempfile.TemporaryDirectory() as folder:
            tune = [options.ergotune, "tune", problem, "--device", options.device, "--store", Path(folder) / "s.db", "--json", "-q"]
            fastest = as_json(*tune, "--budget", options.time_budget)["best"]["configuration"]
            began = time.monotonic()
            searched = as_json(*tune, "--objective", "energy", "--budget", options.budget, "--prior", "auto")
            wall = time.monotonic() - began
            winner = searched["best"]["configuration"]
            energies = {"fastest": [], "winner": []}
            for _ in range(options.repeats):
                for which, configuration in (("fastest", fastest), ("winner", winner)):
                    measured = as_json(options.ergotune, "measure", problem, "--device", options.device, "--objective", "energy", "--json", "--config", json.dumps(configuration))
                    energies[which].append(measured["quantities"]["energy"]["value"])
            ratio = statistics.median(energies["winner"]) / statistics.median(energies["fastest"])
            rows.append({"problem": name, "evaluated": searched["evaluated"], "screened": searched.get("screened", 0), "wall_s": wall,
                         "confirmation_repeats": searched["best"]["confirmation_repeats"], "stopped_because": searched["stopped_because"],
                         "same": winner == fastest, "winner_over_fastest": ratio, "energy_j": energies,
                         "fastest": fastest, "winner": winner})
            print(f"{name}: {wall:.1f} s, {searched['evaluated']} configurations, {searched.get('screened', 0)} by time alone, "
                  f"winner needs {100 * (ratio - 1):+.1f} % of the fastest's energy"
                  f"{' (the same configuration)' if winner == fastest else ''}", flush=True)
    Path(options.output).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
