#!/usr/bin/env python3
"""Does a short search by energy end at more energy than the fastest known configuration needs, and how far from what a longer search finds?

For each problem: a search by time; one by energy that knows nothing of it; a longer one by energy that knows both; then the three winners
measured in turns."""

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
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("problems", nargs="*", default=["convolution/convolution", "correlator/correlator", "softmax/softmax", "tensor_gemm/hopper_gemm", "layer_norm/layer_norm", "sgemm/sgemm"])
    parser.add_argument("--time-budget", default="6s", help="of the search by time")
    parser.add_argument("--budget", default="10s", help="of the search by energy")
    parser.add_argument("--longer-budget", default="22s", help="of the longer search by energy")
    options = parser.parse_args()
    rows = []
    for name in options.problems:
        problem = EXAMPLES / f"{name}.toml"
        with tempfile.TemporaryDirectory() as folder:
            tune = [options.ergotune, "tune", problem, "--device", options.device, "--json", "-q"]
            energy, known, alone = [*tune, "--objective", "energy"], Path(folder) / "known.db", Path(folder) / "alone.db"
            began = time.monotonic()
            searched = as_json(*energy, "--store", alone, "--budget", options.budget)
            wall = time.monotonic() - began
            winners = {"fastest": as_json(*tune, "--store", known, "--budget", options.time_budget)["best"]["configuration"],
                       "winner": searched["best"]["configuration"]}
            longer = as_json(*energy, "--store", known, "--budget", options.longer_budget, "--prior", "auto", "--prior", alone)
            winners["longer"] = longer["best"]["configuration"]
            energies = {json.dumps(configuration): [] for configuration in winners.values()}
            for _ in range(options.repeats if len(energies) > 1 else 0):
                for configuration, found in energies.items():
                    found.append(as_json(options.ergotune, "measure", problem, "--device", options.device, "--objective", "energy", "--json",
                                         "--config", configuration)["quantities"]["energy"]["value"])
            means = {which: statistics.fmean(energies[json.dumps(configuration)] or [1]) for which, configuration in winners.items()}
            ratios = {other: means["winner"] / means[other] for other in ("fastest", "longer")}
            rows.append({"problem": name, "evaluated": searched["evaluated"], "screened": searched.get("screened", 0), "wall_s": wall,
                         "longer_evaluated": longer["evaluated"], "confirmation_repeats": searched["best"]["confirmation_repeats"],
                         "stopped_because": searched["stopped_because"], "winner_over": ratios, "energy_j": list(energies.values()), **winners})
            print(f"{name}: {wall:.1f} s, {searched['evaluated']} configurations, {searched.get('screened', 0)} by time alone; winner needs "
                  f"{100 * (ratios['fastest'] - 1):+.2f} % of the fastest's energy{' (the same)' if winners['winner'] == winners['fastest'] else ''}, "
                  f"{100 * (ratios['longer'] - 1):+.2f} % of the longer search's ({longer['evaluated']} configurations)"
                  f"{' (the same)' if winners['winner'] == winners['longer'] else ''}", flush=True)
        Path(options.output).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
