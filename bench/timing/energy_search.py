#!/usr/bin/env python3
"""Does a short search by energy end at more energy than the fastest known configuration needs, and how far from what a longer search finds?

For each problem: a search by time; one by energy in the same store with `--prior auto` (--alone: in a store of its own, so that it knows nothing
of the other), neither of them with anything compiled; a longer one by energy that knows both; then the three winners measured in turns. A row
is printed and all rows are written after each problem. Several GPUs share the problems: start it once for each, with --device cuda:0 ... and
--jobs, so that each has its part of the host's cores."""

import argparse
import csv
import io
import json
import math
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


def timeline(ergotune, store):
    """Of each measurement: when it ended, s since the epoch, and what it took."""
    text = subprocess.run([ergotune, "export", store, "--format", "csv"], capture_output=True, text=True, check=True).stdout
    rows = sorted(csv.DictReader(io.StringIO(text)), key=lambda row: float(row["finished_at"]))
    return [{"ended_at": float(row["finished_at"]), "status": row["status"],
             **{name: float(row[name]) for name in ("compile_seconds", "verify_seconds", "measure_seconds", "time", "energy") if row.get(name)}}
            for row in rows]


def relative_error(values):
    """Standard error of their mean, as a share of it."""
    return statistics.stdev(values) / len(values) ** 0.5 / statistics.fmean(values) if len(values) > 1 else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ergotune", default="ergotune")
    parser.add_argument("--output", default="energy-search.json")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", help="compile workers of each search")
    parser.add_argument("--repeats", type=int, default=4, help="of each winner in the end; short kernels differ by some percent between processes")
    parser.add_argument("problems", nargs="*", default=["convolution/convolution", "correlator/correlator", "softmax/softmax", "tensor_gemm/hopper_gemm", "layer_norm/layer_norm", "sgemm/sgemm"])
    parser.add_argument("--time-budget", default="6s", help="of the search by time")
    parser.add_argument("--budget", default="10s", help="of the search by energy")
    parser.add_argument("--longer-budget", default="60s", help="of the longer search by energy")
    parser.add_argument("--longer-from", type=Path, metavar="FILE", help="an earlier output, whose longer searches are taken instead of searching longer")
    parser.add_argument("--seed", default="1", help="of the searches")
    parser.add_argument("--alone", action="store_true", help="the search by energy knows nothing of the search by time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for the stores of the longer searches, one for each problem; must have none of them yet")
    options = parser.parse_args()
    kept = {name: options.keep / f"{Path(name).stem}.db" for name in options.problems} if options.keep else {}
    for store in kept.values():
        if store.exists():
            parser.error(f"{store} exists: the longer search would continue it")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    earlier = {row["problem"]: row for row in json.loads(options.longer_from.read_text())} if options.longer_from else {}
    rows = []
    for name in options.problems:
        problem = Path(name) if Path(name).suffix else EXAMPLES / f"{name}.toml"
        with tempfile.TemporaryDirectory() as folder:
            one = [problem, "--device", options.device, "--json", *(["--jobs", options.jobs] if options.jobs else [])]
            tune = [options.ergotune, "tune", *one, "-q", "--seed", options.seed]
            known = Path(folder) / "known.db"
            by_energy = Path(folder) / "alone.db" if options.alone else known

            def search(store, budget, cache, *further):
                began, since = time.monotonic(), time.time()
                result = as_json(*tune, "--store", store, "--budget", budget, "--cache-dir", Path(folder) / cache, *further)
                return result, time.monotonic() - began, since

            energy = ["--objective", "energy"]
            by_time, time_wall, _ = search(known, options.time_budget, "by-time")
            searched, wall, since = search(by_energy, options.budget, "by-energy", *energy, "--prior", "auto")
            priors = [part for store in sorted({known, by_energy}) for part in ("--prior", store)]
            if name in earlier:
                longer = {"best": {"configuration": earlier[name]["longer"]}, "evaluated": earlier[name]["longer_evaluated"]}
                longer_wall = earlier[name]["longer_wall_s"]
            else:
                longer, longer_wall, _ = search(kept.get(name, Path(folder) / "longer.db"), options.longer_budget, "by-energy", *energy, *priors)
            winners = {which: result["best"]["configuration"] for which, result in (("fastest", by_time), ("winner", searched), ("longer", longer))}
            energies = {json.dumps(configuration): [] for configuration in winners.values()}
            for _ in range(options.repeats if len(energies) > 1 else 0):
                for configuration, found in energies.items():
                    found.append(as_json(options.ergotune, "measure", *one, "--cache-dir", Path(folder) / "by-energy", *energy,
                                         "--config", configuration)["quantities"]["energy"]["value"])
            means = {which: statistics.fmean(energies[json.dumps(configuration)] or [1]) for which, configuration in winners.items()}
            ratios = {other: means["winner"] / means[other] for other in ("fastest", "longer")}
            errors = {other: math.hypot(*(relative_error(energies[json.dumps(winners[which])]) for which in ("winner", other)))
                      if winners[other] != winners["winner"] else 0.0 for other in ratios}
            events = timeline(options.ergotune, by_energy)
            for event in events:
                event["ended_at"] -= since
            rows.append({"problem": name, "evaluated": searched["evaluated"], "screened": searched.get("screened", 0), "wall_s": wall,
                         "time_evaluated": by_time["evaluated"], "time_wall_s": time_wall, "longer_evaluated": longer["evaluated"], "longer_wall_s": longer_wall,
                         "confirmation_repeats": searched["best"]["confirmation_repeats"], "stopped_because": searched["stopped_because"],
                         "winner_over": ratios, "standard_error": errors, "energy_j": list(energies.values()), **winners, "timeline": events})
            print(f"{name}: {wall:.1f} s, {searched['evaluated']} configurations, {searched.get('screened', 0)} by time alone (the search by time: "
                  f"{by_time['evaluated']}); winner needs {100 * (ratios['fastest'] - 1):+.2f} +- {100 * errors['fastest']:.2f} % of the fastest's energy"
                  f"{' (the same)' if winners['winner'] == winners['fastest'] else ''}, "
                  f"{100 * (ratios['longer'] - 1):+.2f} +- {100 * errors['longer']:.2f} % of the longer search's ({longer['evaluated']} configurations)"
                  f"{' (the same)' if winners['winner'] == winners['longer'] else ''}", flush=True)
        Path(options.output).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
