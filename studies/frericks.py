"""Frericks (thesis, 2024): energy of five kernels on a Jetson Xavier NX, its Figures 3 to 14 and their like for each kernel, and
51 to 53, simulated. On a real GPU: the temperature study and what the block's size does, at the clocks as they are."""

import csv
import sys
import tomllib

from study import ROOT, correlation, mean, percent_above, simulated_problem, spread_percent

MEASURES = True  # a part of it runs on real GPUs

GPU = "jetson_xavier_nx"
PLANS = ["race_to_idle", "block_to_freq", "freq_to_block", "global_energy"]

# The thesis's block shapes (4, 48, 6, 21 and 4 of them). How efficiency and traffic depend on them is assumed: a parallel
# kernel likes large blocks, one with branches small ones. Then what counts as work, in what the thesis's figures show.
SHAPES = {
    "matmul": ("block = [64, 256, 576, 1024]", "block",
               'flops = "2 * 4096**3"\nbytes = "4 * 2 * 4096**3 / (2 * sqrt(block))"\nefficiency = "0.10 + 0.03 * (block >= 1024)"', 2 * 4096**3 / 1e9, "GFLOP"),
    "rgb2gray": ("x = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]\ny = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]", "x * y",
                 'flops = "5 * 20000**2"\nbytes = "16 * 20000**2 * (1 + 1 / x)"\nefficiency = "0.5"', 5 * 20000**2 / 1e9, "GFLOP"),
    "raycasting": ("block = [32, 64, 128, 256, 512, 1024]", "block",
                   'flops = "4e10"\nbytes = "2e9"\nefficiency = "0.3 / (1 + 0.08 * log2(block // 32 + 1))"', 1, "run"),
    "bandpass": ("x = [1, 2, 4, 8, 16, 32]\ny = [32, 64, 128, 256, 512, 1024]", "x * y",
                 'flops = "1e9"\nbytes = "1.2e9 * (1 + 0.02 * x)"\nefficiency = "0.4 / (1 + 0.05 * log2(x * y // 32 + 1))"', 1, "run"),
    "correlator": ("block = [128, 192, 448, 832]", "block",
                   'flops = "3e10"\nbytes = "5e8"\nefficiency = "0.30 + 0.12 * (block == 448) + 0.1 * (block == 192)"', 1, "run"),
}
LIMITS = {"rgb2gray": ["32 <= x * y <= 1024"], "bandpass": ["x * y <= 1024"]}


#: the thesis: race to idle above the least, efficiency gained, speed given up (percent)
THESIS = {"matmul": (34.55, 34.60, 30.28), "rgb2gray": (50, 49.64, 11.12), "raycasting": (48.32, 48.15, 9.80),
          "bandpass": (38.64, 38.47, 15.60), "correlator": (46.84, 46.8, 32.44)}
#: its best block, in threads, where ours is another
THESIS_BLOCK = {"rgb2gray": 256, "bandpass": 32}


def problem(study, name):
    parameters, threads, simulation, _, _ = SHAPES[name]
    return study.problem(name, simulated_problem(name, parameters, threads, simulation, LIMITS.get(name, ())))


def threads_of(row):
    return int(row["block"] if "block" in row else row["x"] * row["y"])


def kernel_figures(study, name, found):
    """Figures 6 to 13 for one kernel: power, speed and efficiency by clock and by block size, both together, and against each other.
    Of shapes with the same number of threads the best is drawn, as in the thesis."""
    _, _, _, work, unit = SHAPES[name]
    best = {}
    for row in found:
        key = (threads_of(row), row["core_clock_mhz"])
        if key not in best or row["energy"] < best[key]["energy"]:
            best[key] = row
    sizes, clocks = sorted({size for size, _ in best}), sorted({clock for _, clock in best})
    shown = clocks[::3]  # five of fifteen, from the lowest in steps of three
    measures = {"power": ("W", lambda r: r["energy"] / r["time"]), "speed": (f"{unit}/s", lambda r: work / r["time"]),
                "efficiency": (f"{unit}/J", lambda r: work / r["energy"])}
    for i, (what, (y, value)) in enumerate(measures.items()):
        study.figure(f"{name}-figure{6 + 2 * i}", f"{name}: {what} at five clocks", "threads of a block", y, {
            f"{clock:.0f} MHz": ([(size, value(best[size, clock])) for size in sizes if (size, clock) in best], "line") for clock in shown})
        study.figure(f"{name}-figure{7 + 2 * i}", f"{name}: {what} of block sizes", "MHz", y, {
            f"{size} threads": ([(clock, value(best[size, clock])) for clock in clocks if (size, clock) in best], "line") for size in sizes[:8]})
    study.figure(f"{name}-figure12", f"{name}: efficiency of blocks and clocks", "MHz", f"{unit}/J", {
        f"{size} threads": ([(clock, work / best[size, clock]["energy"]) for clock in clocks if (size, clock) in best], "points")
        for size in sizes[:8]})
    study.figure(f"{name}-figure13", f"{name}: speed against efficiency", f"{unit}/s", f"{unit}/J", {
        "configurations": ([(work / r["time"], work / r["energy"]) for r in found], "points")})
    return best


def statements(name, best):
    """What the thesis states of a kernel's blocks and clocks beside Figures 6 to 49, in numbers: of `best`, the row of each number of
    threads at each clock."""
    sizes, clocks = sorted({size for size, _ in best}), sorted({clock for _, clock in best})
    low, middle = clocks[3], clocks[6]  # 408 and 701.25 MHz, the second and third of the five that are shown
    power = lambda size: best[size, middle]["energy"] / best[size, middle]["time"]
    speed = lambda size: 1 / best[size, middle]["time"]
    spread = lambda value: percent_above(max(map(value, sizes)), min(map(value, sizes)))
    best_clock = {size: min(clocks[::3], key=lambda clock: best[size, clock]["energy"]) for size in sizes}
    if name == "matmul":
        return {"matmul_best_in_the_middle": sum(clock == middle for clock in best_clock.values())}
    if name == "rgb2gray":
        return {f"rgb2gray_{what}_of_256__{size}": value(size) / value(256) for what, value in (("power", power), ("speed", speed)) for size in (32, 64)}
    if name == "raycasting":
        return {"raycasting_power_spread": spread(power), "raycasting_speed_spread": spread(speed)}
    if name == "bandpass":
        return {"bandpass_best_at_low": sum(best_clock[size] == low for size in sizes if size > 32), "bandpass_best_clock__32": best_clock[32]}
    return {"correlator_best_at_448": sum(min(sizes, key=lambda size: best[size, clock]["energy"]) == 448 for clock in clocks),
            "correlator_power_rises": sum(power(b) > power(a) for a, b in zip(sizes, sizes[1:]))}


def kernels(study):
    """Figures 6 to 14 of each kernel, and what is said of them together."""
    rows, energies, block_clocks = [], {plan: [] for plan in PLANS}, []
    for name in SHAPES:
        file = problem(study, name)
        _, found = study.everything(file, GPU)
        compared = study.ergotune("tune", file, "--device", f"sim:{GPU}", "--plan", ",".join(PLANS), "--no-store", "-q")
        above = {plan["plan"]: plan["above_optimum_percent"] for plan in compared["plans"]}
        evaluated = {plan["plan"]: plan["asked"] for plan in compared["plans"]}
        above["freq_to_block_from_256"] = freq_to_block_from_256(found)
        for plan in compared["plans"]:
            energies[plan["plan"]].append(plan["best"]["quantities"]["energy"]["value"] / compared["optimum_energy"])
        fastest, greenest = (min(found, key=lambda r: r[what]) for what in ("time", "energy"))
        row = {"kernel": name, "configurations": compared["space"], **{f"{plan}_above_percent": above[plan] for plan in above},
               "left_out_percent": 100 * (1 - evaluated["block_to_freq"] / compared["space"]),
               "efficiency_gained_percent": percent_above(fastest["energy"], greenest["energy"]),
               "speed_change_percent": 100 * (fastest["time"] / greenest["time"] - 1), "best_mhz": greenest["core_clock_mhz"],
               "best_threads": threads_of(greenest)}
        rows.append(row)
        study.note(**{f"{what}__{name}": row[what] for what in row if what != "kernel"})
        best = kernel_figures(study, name, found)
        study.note(**statements(name, best))
        of_blocks = {size: min((row for (threads, _), row in best.items() if threads == size), key=lambda r: r["energy"]) for size, _ in best}
        block_clocks += [row["core_clock_mhz"] for row in of_blocks.values()]
        if name in THESIS_BLOCK:
            study.note(**{f"thesis_block_above__{name}": percent_above(of_blocks[THESIS_BLOCK[name]]["energy"], greenest["energy"])})
        if name == "matmul":
            three_clocks(study, found)
        if name == "rgb2gray":
            three_ranges(study, found)
    study.table("strategies", rows)
    study.bars("figure14", "Energy of what each way of tuning finds, of the least", "of the least", list(SHAPES), energies)
    two_stage = [row[f"{plan}_above_percent"] for row in rows for plan in ("block_to_freq", "freq_to_block_from_256")]
    for name, column in (("race_to_idle", "race_to_idle_above_percent"), ("left_out", "left_out_percent")):
        values = [row[column] for row in rows]
        study.note(**{f"{name}_mean": mean(values), f"{name}_least": min(values), f"{name}_most": max(values)})
    for i, (name, column) in enumerate((("race_to_idle", "race_to_idle_above_percent"), ("gain", "efficiency_gained_percent"),
                                        ("speed", "speed_change_percent"))):
        sign = -1 if name == "speed" else 1
        study.note(**{f"{name}_correlation": correlation([sign * row[column] for row in rows], [THESIS[row["kernel"]][i] for row in rows])})
    study.note(block_clock_least=min(block_clocks), block_clock_most=max(block_clocks))
    study.note(two_stage_most=max(two_stage), best_clock_least=min(r["best_mhz"] for r in rows),
               best_clock_most=max(r["best_mhz"] for r in rows))


def freq_to_block_from_256(found):
    """What the clock that is best at 256 threads, or the nearest number that the kernel has, and the block that is best at it need
    above the least: the thesis's FreqToBlock. Of the shapes with so many threads the best is held."""
    energy = lambda row: row["energy"]
    held = min((threads_of(row) for row in found), key=lambda threads: abs(threads - 256))
    clock = min((row for row in found if threads_of(row) == held), key=energy)["core_clock_mhz"]
    return percent_above(energy(min((row for row in found if row["core_clock_mhz"] == clock), key=energy)), energy(min(found, key=energy)))


def three_clocks(study, found):
    """Figures 51 to 53: power, time and energy of the highest, a middle and the lowest clock, best block."""
    clocks = sorted({r["core_clock_mhz"] for r in found})
    chosen = {"highest": clocks[-1], "middle": clocks[len(clocks) // 2], "lowest": clocks[0]}
    rows = {name: min((r for r in found if r["core_clock_mhz"] == clock), key=lambda r: r["energy"]) for name, clock in chosen.items()}
    for figure, what, unit, value in ((51, "power", "W", lambda r: r["energy"] / r["time"]), (52, "time", "s", lambda r: r["time"]),
                                      (53, "energy", "J", lambda r: r["energy"])):
        study.bars(f"figure{figure}", f"matmul: {what} at three clocks", unit, [f"{name}, {clock:.0f} MHz" for name, clock in chosen.items()],
                   {what: [value(rows[name]) for name in chosen]})
        study.note(**{f"lowest_of_middle_{what}": value(rows["lowest"]) / value(rows["middle"]),
                      f"highest_of_middle_{what}": value(rows["highest"]) / value(rows["middle"])})


def three_ranges(study, found):
    """What the thesis states of rgb2gray: the first, third and fifth of the clocks that its figures show, best block each."""
    shown = sorted({r["core_clock_mhz"] for r in found})[::3]
    lower, middle, upper = (min((r for r in found if r["core_clock_mhz"] == clock), key=lambda r: r["energy"]) for clock in shown[::2])
    power = lambda row: row["energy"] / row["time"]
    study.note(upper_of_middle_power=percent_above(power(upper), power(middle)), upper_of_middle_speed=percent_above(middle["time"], upper["time"]),
               lower_of_middle_power=percent_above(power(lower), power(middle)), lower_of_middle_time=lower["time"] / middle["time"])


def specifications(study):
    """Figure 4: the GPU, as its profile has it."""
    profile = tomllib.loads((ROOT / f"profiles/{GPU}.toml").read_text())
    study.table("figure4", [{"what": f"{table}.{name}", "value": value} for table, values in profile.items() if isinstance(values, dict)
                            for name, value in values.items() if isinstance(value, (int, float))])


MATMUL = ROOT / "examples/jetson/matmul.toml"
WORK = 2 * 4096**3 / 1e9


def temperature(study):
    """Figure 5 on a GPU: the same configuration again and again; the thesis has 500 iterations."""
    try:
        study.ergotune("temperature", MATMUL, "--device", study.device, "--config", '{"block_size": 32}', "--runs", 100, "--seconds", 40,
                       "--dry-run", "--csv", study.output / "figure5.csv", "--figure", study.output / "figure5.svg")
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return
    with open(study.output / "figure5.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["energy_j"]]
    series = {"temperature": ("degrees C", [float(r["temperature_c"]) for r in rows]), "speed": ("GFLOP/s", [WORK / float(r["time_s"]) for r in rows]),
              "efficiency": ("GFLOP/s/W", [WORK / float(r["energy_j"]) for r in rows])}
    for what, (unit, values) in series.items():
        study.figure(f"figure5-{what}", f"matmul again and again: {what}", "iteration", unit, {what: (list(enumerate(values)), "line")})
    least, most = min(series["temperature"][1]), max(series["temperature"][1])
    study.note(temperature_iterations=len(rows), temperature_least=least, temperature_most=most, temperature_span=most - least,
               speed_spread=spread_percent(series["speed"][1]), efficiency_spread=spread_percent(series["efficiency"][1]))


def block_sizes(study):
    """Figures 7, 9 and 11 on a GPU, at the clocks as they are: what the block's size does to power, speed and efficiency."""
    rows = []
    for size in (8, 16, 24, 32):
        found = study.measure(MATMUL, {"block_size": size})
        if found:
            rows.append({"threads": size**2, "watts": found["quantities"]["power"]["value"], "gflops": found["metrics"]["gflops"],
                         "gflops_per_watt": found["metrics"]["gflops_per_watt"]})
            study.note(**{f"block_{what}__{size**2}": rows[-1][what] for what in ("watts", "gflops", "gflops_per_watt")})
    study.table("figure7", rows)
    for figure, what, unit in ((7, "watts", "W"), (9, "gflops", "GFLOP/s"), (11, "gflops_per_watt", "GFLOP/s/W")):
        study.bars(f"figure{figure}", f"matmul: {what} of block sizes", unit, [r["threads"] for r in rows], {what: [r[what] for r in rows]})


def settling(study):
    """Figure 3 on a GPU: how long power takes to settle."""
    found = study.ergotune("trace", MATMUL, "--device", study.device, "--config", '{"block_size": 32}', "--seconds", 4, "--before", 1,
                           "--after", 1, "--csv", study.output / "figure3.csv", "--figure", study.output / "figure3.svg")
    for series in found["power"]:
        study.note(**{f"settling_seconds__{series['series'].split('/')[-1]}": series["settling_seconds"]})


def run(study):
    if study.device:
        study.go_through([("temperature (Figure 5)", temperature), ("block sizes (Figures 7, 9, 11)", block_sizes),
                          ("settling of power (Figure 3)", settling)])
    else:
        study.go_through([("the GPU (Figure 4)", specifications), ("five kernels (Figures 6 to 14, 51 to 53)", kernels)])
