#!/usr/bin/env python3
"""What the observer "counters" says on a real GPU, against what is known: for scripts/gpu-check counters.

    acceptance.py --ergotune PROGRAM --output FOLDER known | paired | ncu | dgemm

known:  a copy's bytes of device memory and the flops of chains of multiply-adds, against their arithmetic.
paired: times of 100 GEMM configurations without, with, and without counters again (the third says what the first two may differ by).
ncu:    five GEMM configurations against Nsight Compute, its clock control off.
dgemm:  the DGEMM stencil with energy and counters, for Figures 6 to 9 of Anzt et al.
Nothing here sets a clock. Every part prints one JSON object and ends with 1 where a bound is missed.
"""

import argparse
import csv
import glob
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GEMM = ROOT / "examples/gemm/gemm.toml"


def run(words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode:
        print(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}", file=sys.stderr)
    return done


def measure(program, problem, *options):
    done = run([program, "measure", problem, "--device", "cuda:0", "--json", *options])
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"quantities": {}, "metrics": {}, "failed": done.stderr[-2000:]}


def known(program, output):
    """Within 1 % of the arithmetic. The copy is of 1 GiB with a flushed cache: what stays in L2 at its end, of the copy's own,
    is made up for by what the flush had left there."""
    folder = output / "known"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "examples/energy_kernels", folder)
    copy = folder / "copy.toml"
    count = 1 << 28
    copy.write_text(copy.read_text().replace("COUNT = 67108864", f"COUNT = {count}").replace(", fill = { random = [-1, 1], seed = 14 }", ""))
    rows = []

    def compare(problem, expected, *options):
        names = list(expected)
        observe = "counters:" + ",".join(f"metrics={n}" for n in names)
        document = measure(program, problem, "--no-verify", "--observe", observe, *options)
        for name in names:
            found = document["quantities"].get(name)
            rows.append({"kernel": problem.stem, "counter": name, "expected": expected[name],
                         "found": found and found["value"], "method": found and found["method"],
                         "error_percent": found and 100 * (found["value"] / expected[name] - 1),
                         "time": document["quantities"].get("time", {}).get("value"),
                         "warnings": document.get("warnings"), "message": document.get("message"), "failed": document.get("failed")})

    compare(copy, {"dram_read_bytes": 4 * count, "dram_write_bytes": 4 * count, "dram__bytes_read.sum": 4 * count}, "--cold-cache")
    compare(copy, {"gld_requested_bytes": 4 * count, "gst_requested_bytes": 4 * count})
    compare(folder / "fma32.toml", {"flop_count_sp": 2 * 16 * 12000 * 270336})
    compare(folder / "fp64.toml", {"flop_count_dp": 2 * 8 * 8000 * 270336})
    good = all(r["error_percent"] is not None and abs(r["error_percent"]) <= 1 for r in rows)
    return good, rows


def export(program, store):
    table = store.with_suffix(".csv")
    run([program, "export", store, "--format", "csv", "-o", table])
    with open(table, newline="") as file:
        return list(csv.DictReader(file))


def parameters_of(row):
    return tuple(row[name] for name in list(row)[:list(row).index("status")])


def paired(program, output, budget=100):
    runs = {}
    for name, more in (("before", []), ("counted", ["--observe", "counters"]), ("after", [])):
        store = output / f"paired-{name}.db"
        store.unlink(missing_ok=True)
        began = time.time()
        run([program, "tune", GEMM, "--device", "cuda:0", "--strategy", "random", "--seed", 7, "--budget", budget, "--no-confirm",
             "--objective", "pareto(time, registers)", "--jobs", 14, "--max-seconds", 0.1, "--store", store, "-q", *more])
        rows = {parameters_of(r): r for r in export(program, store) if r["status"] in ("ok", "not_converged")}
        runs[name] = (rows, time.time() - began)
    rows, seconds = zip(*runs.values())
    shared = sorted(set(rows[0]) & set(rows[1]) & set(rows[2]))
    usual = [c["name"] for c in json.loads(run([program, "counters", "check", "--device", "sm_90", "--json"]).stdout)["counters"]]
    complete = sum(all(rows[1][key].get(name) for name in usual) for key in shared)

    def difference(a, b):
        """Mean of the logarithms of the ratios with its standard error, in percent, trimmed of the extreme 5 % at each end."""
        logs = sorted(math.log(float(rows[a][key]["time"]) / float(rows[b][key]["time"])) for key in shared)
        cut = len(logs) // 20
        kept = logs[cut:len(logs) - cut] if cut else logs
        mean = sum(kept) / len(kept)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in kept) / (len(kept) - 1))
        return 100 * mean, 100 * deviation / math.sqrt(len(kept)), 100 * logs[len(logs) // 2]

    effect, error, median = difference(1, 0)
    control, control_error, control_median = difference(2, 0)
    own = [sum(float(r[key]["measure_seconds"]) for key in shared) / len(shared) for r in rows]
    found = {"configurations": len(shared), "with_all_20": complete, "effect_percent": effect, "standard_error": error,
             "median_percent": median, "control_percent": control, "control_error": control_error,
             "control_median": control_median, "seconds": seconds, "measure_seconds_each": own}
    return complete == len(shared) and len(shared) >= 0.95 * budget and abs(effect) <= 2 * math.hypot(error, control_error) + 0.1, found


COLUMNS = {"inst_executed": ["smsp__inst_executed.sum"], "ldst_executed": ["smsp__inst_executed_pipe_lsu.sum"],
           "shared_load_transactions": ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
           "gld_transactions": ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
           "ipc": ["sm__inst_executed.avg.per_cycle_active"], "dram_read_bytes": ["dram__bytes_read.sum"],
           "achieved_occupancy": ["sm__warps_active.avg.pct_of_peak_sustained_active"]}


def find_ncu():
    found = shutil.which("ncu")
    places = [*glob.glob("/usr/local/cuda*/bin/ncu"), *glob.glob("/opt/nvidia/nsight-compute/*/ncu"),
              *glob.glob("/usr/local/lib/python3*/*-packages/nvidia/**/ncu", recursive=True)]
    return found or (places[0] if places else None)


def ncu(program, output):
    tool = find_ncu()
    if not tool:
        return False, {"ncu": "not found"}
    metrics = ",".join(m for ms in COLUMNS.values() for m in ms)
    observe = "counters:" + ",".join(f"metrics={n}" for n in COLUMNS)
    scale = {"achieved_occupancy": 0.01}
    configurations = [{}, {"MWG": 64, "NWG": 64}, {"MWG": 64, "NWG": 64, "KWG": 32, "SA": 1, "SB": 1},
                      {"MWG": 128, "NWG": 64, "MDIMC": 16, "NDIMC": 8, "MDIMA": 16, "NDIMB": 8, "VWM": 2, "VWN": 2, "SA": 1, "SB": 1},
                      {"MWG": 32, "NWG": 32, "SB": 1}]
    rows = []
    for configuration in configurations:
        config = json.dumps(configuration)
        ours = measure(program, GEMM, "--config", config, "--observe", observe, "--max-seconds", "0.05")
        done = run([tool, "--clock-control", "none", "--cache-control", "none", "--target-processes", "all", "-k", "gemm",
                    "--launch-count", "1", "--csv", "--page", "raw", "--print-units", "base", "--metrics", metrics,
                    program, "measure", GEMM, "--device", "cuda:0", "--config", config, "--in-process", "--no-verify", "--max-seconds", "0.05", "--json"],
                   env={**os.environ, "ERGOTUNE_DEVICE_LOCK": "off"})
        lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
        table = list(csv.DictReader(lines))
        theirs = table[-1] if table else {}
        for name, (metric,) in COLUMNS.items():
            mine = ours["quantities"].get(name, {}).get("value")
            said = theirs.get(metric)
            other = float(said.replace(",", "")) * scale.get(name, 1) if said else None
            rows.append({"configuration": configuration, "counter": name, "ergotune": mine, "ncu": other, "failed": ours.get("failed"),
                         "difference_percent": 100 * (mine / other - 1) if mine is not None and other else None})
    worst = {}
    for row in rows:
        if row["difference_percent"] is None:
            worst[row["counter"]] = None
        elif worst.get(row["counter"], 0) is not None:
            worst[row["counter"]] = max(abs(row["difference_percent"]), worst.get(row["counter"], 0))
    within = [name for name, value in worst.items() if value is not None and value <= 2]
    return len(within) >= 2, {"ncu": tool, "worst_percent": worst, "within_2_percent": within, "rows": rows}


def dgemm(program, output, seconds=150):
    store = output / "dgemm-counters.db"
    store.unlink(missing_ok=True)
    began = time.time()
    done = run([program, "tune", ROOT / "examples/dgemm_beast/dgemm.toml", "--device", "cuda:0", "--strategy", "random", "--seed", 3,
                "--objective", "pareto(time, energy)", "--budget", f"{seconds}s", "--no-confirm", "--jobs", 14, "--max-seconds", 0.1,
                "--observe", "counters", "--store", store, "-q", "--json"])
    rows = export(program, store)
    peaks = []
    for name, counters in (("copy", "metrics=dram_read_bytes,metrics=dram_write_bytes"), ("fp64", "metrics=flop_count_dp")):
        peak = output / f"peaks-{name}.db"
        peak.unlink(missing_ok=True)
        run([program, "measure", ROOT / f"examples/energy_kernels/{name}.toml", "--device", "cuda:0", "--objective", "energy",
             "--observe", f"counters:{counters}", "--store", peak, "--json"])
        peaks += ["--peaks", peak]
    analysis = run([program, "analyse", store, *peaks, "--figures", output / "dgemm-figures", "--json"]).stdout
    (output / "dgemm-analysis.json").write_text(analysis)
    run([program, "export", store, "--format", "kt", "-o", output / "dgemm-counters.json"])
    usable = [r for r in rows if r["status"] in ("ok", "not_converged")]
    return len(usable) >= 20, {"rows": len(rows), "usable": len(usable), "with_ipc": sum(bool(r.get("ipc")) for r in usable),
                               "seconds": time.time() - began, "words": done.stderr[-500:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["known", "paired", "ncu", "dgemm"])
    parser.add_argument("--ergotune", default="build/release/ergotune")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/gpu/out"))
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--budget", type=int, default=100)
    arguments = parser.parse_args()
    program, output = str(pathlib.Path(arguments.ergotune).resolve()), arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    more = {"dgemm": {"seconds": arguments.seconds}, "paired": {"budget": arguments.budget}}.get(arguments.part, {})
    good, found = globals()[arguments.part](program, output, **more)
    text = json.dumps({"part": arguments.part, "good": good, "found": found}, indent=1)
    (output / f"counters-{arguments.part}.json").write_text(text + "\n")
    print(text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
