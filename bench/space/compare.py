#!/usr/bin/env python3
"""Builds every search space with ergotune and with Kernel Tuner in one run and compares them.

    bench/space/compare.py --bench build/bench/bench_space

Time is processor time (other programs on the machine must not count) from the texts of the restrictions to the finished
space, median of several; memory is the peak resident set of a
process that builds the space once. The sets are compared in full, by a sum of hashes of their configurations.
Kernel Tuner (1.4) comes from PyPI into a virtual environment that this script makes. Exits with 1 when a set differs, or (with --strict) when a bound is missed:
100 times faster on spaces of 10,000 configurations and more, 20 times on smaller ones, a tenth of the memory.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]


def peer_build(file, repeats):
    """Runs inside the virtual environment: times Kernel Tuner's Searchspace on one definition."""
    import time

    from kernel_tuner.interface import Options
    from kernel_tuner.searchspace import Searchspace

    with open(file) as stream:
        definition = json.load(stream)
    times = []
    for _ in range(repeats):
        tune_params = dict(definition["tune_params"])
        start = time.process_time()
        space = Searchspace(tune_params, list(definition["restrictions"]), definition["max_threads"])
        times.append(time.process_time() - start)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    names = list(definition["tune_params"])
    return {"valid": space.size, "seconds": statistics.median(times), "peak_bytes": peak}, names, space


def peer_main(arguments):
    result, names, space = peer_build(arguments.peer, arguments.repeats)
    if arguments.hash:
        import xxhash

        total = 0
        for configuration in space.list:
            text = "".join(f"{name}={value};" for name, value in zip(names, configuration))
            total += xxhash.xxh3_64_intdigest(text.encode())
        result["set_hash"] = f"{total % 2**64:016x}"
    print(json.dumps(result))


def make_environment(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} with Kernel Tuner", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "kernel-tuner==1.4.*", "xxhash"], check=True)
    return python


def run(command):
    completed = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if completed.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{completed.stderr[-2000:]}")
    return json.loads(completed.stdout)


def compare(arguments):
    folder = pathlib.Path(arguments.data) if arguments.data else ROOT / "tests/data/recorded/spaces"
    files = sorted(folder.glob("*.json"))
    if not files:
        raise SystemExit(f"no space definitions in {folder}; give --data")
    python = make_environment(pathlib.Path(arguments.environment))
    rows, failed = [], False
    for file in files:
        ours = run([arguments.bench, file, "--repeats", arguments.repeats, "--hash"])
        ours_once = run([arguments.bench, file, "--repeats", 1])
        theirs = run([python, __file__, "--peer", file, "--repeats", 1 if arguments.quick else 5])
        theirs_hash = run([python, __file__, "--peer", file, "--repeats", 1, "--hash"])
        row = {
            "space": file.stem,
            "cartesian": ours["cartesian"],
            "valid": ours["valid"],
            "seconds": ours["build_seconds_median"],
            "peer_seconds": theirs["seconds"],
            "speedup": theirs["seconds"] / ours["build_seconds_median"],
            "peak_bytes": ours_once["peak_bytes"],
            "peer_peak_bytes": theirs_hash["peak_bytes"],
            "memory_ratio": ours_once["peak_bytes"] / theirs_hash["peak_bytes"],
            "space_bytes": ours["memory_bytes"],
            "values_at_seconds": ours.get("values_at_seconds"),
            "neighbours_hamming_seconds": ours.get("neighbours_hamming_seconds"),
            "same_set": ours["set_hash"] == theirs_hash["set_hash"] and ours["valid"] == theirs_hash["valid"],
        }
        bound = 100 if row["valid"] >= 10000 else 20
        row["bound_met"] = row["speedup"] >= bound and row["memory_ratio"] <= 0.1
        failed = failed or not row["same_set"] or (arguments.strict and not row["bound_met"])
        rows.append(row)
        print(
            f"{row['space']:24} {row['valid']:>8}  ergotune {row['seconds'] * 1e3:8.3f} ms  Kernel Tuner "
            f"{row['peer_seconds'] * 1e3:8.1f} ms  {row['speedup']:7.0f}x  memory {row['peak_bytes'] / 1e6:5.1f} / "
            f"{row['peer_peak_bytes'] / 1e6:5.0f} MB  {'same set' if row['same_set'] else 'SETS DIFFER'}",
            file=sys.stderr,
        )
    print(json.dumps({"spaces": rows}, indent=2))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=ROOT / "build" / "bench" / "bench_space", help="the bench_space program")
    parser.add_argument("--data", help="folder of the definitions")
    parser.add_argument("--environment", default=ROOT / ".venv" / "space", help="virtual environment for Kernel Tuner")
    parser.add_argument("--repeats", type=int, default=21, help="builds timed")
    parser.add_argument("--quick", action="store_true", help="time Kernel Tuner once per space")
    parser.add_argument("--strict", action="store_true", help="fail when a bound is missed")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--hash", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer_main(arguments)
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
