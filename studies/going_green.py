"""Going Green (Schoonhoven et al., PMBS 2022): its Figures 2 to 10 and Table II, on simulated GPUs and recorded powers."""

import concurrent.futures
import csv
import gzip
import json
import math
import tomllib

from study import ROOT, correlation, mean, mean_and_deviation, percent_above, simulated_problem

MEASURES = True  # a part of it runs on real GPUs

GPUS = ["a100", "rtx_a4000", "rtx_a6000", "titan_rtx"]
MODELLED = ["a100", "rtx_a4000", "titan_rtx", "v100"]
PLANS = ["race_to_idle", "energy_at_max_clock", "race_to_idle_then_clocks", "energy_then_clocks", "global_energy", "model_steered"]

# Table II as printed: TOP/s before, change in percent, GOPs/W before, gain in percent, tuned clock. What is before in TOP/s says how much of its peak a kernel
# reaches on each GPU, and is put in; the rest is what the study's figures stand beside.
KERNELS = ["gridder", "degridder", "fdd", "tdd", "tcc", "lofar"]
TABLE_TWO = {
    "a100": [(16.3, -26.5, 64.7, 58.6, 1035), (14.5, -26.2, 59.8, 63.1, 1035), (9.7, -24.6, 62.2, 49.1, 1035),
             (3.4, -26.4, 13.3, 61.3, 1035), (148.4, -8.9, 684.8, 84.6, 1035), (12.2, -12.0, 58.9, 113.8, 1035)],
    "rtx_a4000": [(11.0, -25.8, 77.6, 38.6, 1200), (10.2, -8.1, 90.8, 44.9, 1470), (8.3, -19.2, 77.6, 44.3, 1290),
                  (1.5, -22.2, 12.9, 33.0, 1200), (57.2, -3.6, 571.2, 6.2, 1290), (8.7, -4.2, 98.9, 20.6, 1470)],
    "titan_rtx": [(14.3, -37.2, 55.2, 24.2, 1260), (13.7, -39.7, 48.4, 35.4, 1155), (10.2, -45.4, 39.9, 50.2, 1050),
                  (2.1, -40.0, 8.0, 50.7, 1050), (34.7, -32.6, 140.5, 49.1, 1155), (12.8, -43.4, 51.5, 51.6, 1155)],
    "v100": [(11.6, -18.0, 59.6, 23.6, 1110), (11.0, -19.9, 61.7, 20.2, 1110), (7.4, -19.2, 58.6, 18.1, 1110),
             (2.2, -37.8, 11.6, 34.9, 1110), (34.2, -18.9, 260.8, 15.6, 1110), (9.9, -23.5, 74.7, 16.3, 1110)],
}


# How hard GEMM and the full load work a GPU, relative to the profile's stream of multiply-adds: such that the full load meets the
# default limit at 1410 MHz on the A100, 1500 on the A4000 and 1650 on the others. In the paper's Figure 6 every limit binds on all
# three GPUs, the A100 sustains its highest clock and the others do not sustain their turbo.
FULL_AT = {"a100": 1410, "rtx_a4000": 1500, "rtx_a6000": 1650, "titan_rtx": 1650}

# What CLBlast's GEMM costs, assumed: a tile's stripes are read once from memory, without shared memory also by neighbours; narrow
# reads waste a part of each transaction; accumulators and vectors take registers; loads and loop take issue slots.
GEMM_SIMULATION = """
[simulation]
flops = "2 * SIZE_M * SIZE_N * SIZE_K"
bytes = "4 * SIZE_M * SIZE_N * SIZE_K * ((2 - SA) / NWG * (1 + 0.2 * (MDIMA * VWM < 32)) + (2 - SB) / MWG * (1 + 0.2 * (NDIMB * VWN < 32))) / 2"
registers = "min(255, 20 + MWG * NWG // (MDIMC * NDIMC) + 2 * VWM + 2 * VWN)"
shared_bytes = "4 * KWG * (SA * MWG + SB * NWG)"
efficiency = "0.95 / (1 + 0.5 * (MDIMC / MWG + NDIMC / NWG)) / (1 + 0.06 / VWM + 0.06 / VWN) / (1 + 0.04 * (2 - SA - SB))"
"""


def profile(gpu):
    return tomllib.loads((ROOT / f"profiles/{gpu}.toml").read_text())


def load_factor(gpu):
    """`power` of a simulated kernel that keeps all multiprocessors busy and meets the default limit at FULL_AT."""
    power, full = profile(gpu)["power"], FULL_AT[gpu]
    volts = 1 + power["voltage_slope_per_mhz"] * max(0, full - power["ridge_mhz"])
    return (power["limit_max_w"] - power["idle_w"]) / (power["dynamic_w_per_mhz"] * full * volts**2)


def gemm(study, gpu, execution):
    """The 17,472 configurations of examples/gemm/gemm_going_green.toml as a simulated kernel, with execution parameters."""
    text = (ROOT / "examples/gemm/gemm_going_green.toml").read_text()
    restrictions = text[text.index("restrictions = ["):text.index("[constants]")]
    parameters = text[text.index("[parameters]"):text.index("[kernel]")]
    launch = text[text.index("[kernel.launch]"):text.index("[verification]")]
    metrics = text[text.index("[metrics]"):]
    return f"""name = "gemm_going_green"
objective = "energy"
{restrictions}
[constants]
SIZE_M = 4096
SIZE_N = 4096
SIZE_K = 4096
{parameters}
[execution]
{execution}
[kernel]
function = "gemm"
[kernel.source.opencl]
text = "kernel void gemm() {{}}"
{launch}{metrics}{GEMM_SIMULATION}power = {load_factor(gpu):.4f}
"""


def clocks_and_limits(study, gpu):
    """GEMM's problems at 7 clocks and under 7 power limits; on the Titan RTX in the paper's steps of 75 MHz and 25 W."""
    clocks, limits = ("{ from = 300, to = 2100, step = 75 }", "{ from = 100, to = 300, step = 25 }") if gpu == "titan_rtx" else (7, 7)
    return (study.problem(f"gemm-clocks-{gpu}", gemm(study, gpu, f"core_clock_mhz = {clocks}")),
            study.problem(f"gemm-limits-{gpu}", gemm(study, gpu, f"power_limit_w = {limits}")))


def ridges(study):
    """Figures 8 and 9: the clock from which voltage rises, what +-10 % of it leaves out, power and energy over the clock."""
    rows, speeds = [], {}
    sources = [(gpu, "simulated", ("--device", f"sim:{gpu}", "--no-store")) for gpu in MODELLED]
    for gpu, name in (("a100", "NVIDIA_A100-PCIE-40GB"), ("rtx_a4000", "NVIDIA_RTX_A4000")):
        sources.append((gpu, "recorded", ("--from", study.recorded("power", f"synthetic_fp32_cache_{name}.json"))))
    for gpu, kind, options in sources:
        model = study.ergotune("model", *options)
        ridge, best, left_out = model["ridge_mhz"], model["optimal_clock_mhz"]["value"], 100 * model["removed_share"]
        points = sorted((s["clock_mhz"], s["power_w"], s["modelled_power_w"]) for s in model["samples"])
        highest, base = points[-1][0], profile(gpu)["clock"]["base_mhz"]
        rows.append({"gpu": gpu, "provenance": kind, "ridge_mhz": ridge["value"], "low_mhz": ridge["low"],
                     "high_mhz": ridge["high"], "optimal_mhz": best, "base_mhz": base, "highest_mhz": highest,
                     "clocks_left_out_percent": left_out})
        # of a simulated GPU the clocks of the fit are chosen while it goes on
        note = study.note if kind == "recorded" else study.note_searched
        note(**{f"ridge__{kind}__{gpu}": ridge["value"],
                f"optimal_clock__{kind}__{gpu}": best, f"ridge_of_highest__{kind}__{gpu}": 100 * ridge["value"] / highest,
                f"ridge_of_base__{kind}__{gpu}": ridge["value"] / base})
        if kind == "recorded":
            study.note(**{f"kept__{kind}__{gpu}": 100 - left_out, f"fit_residual__{gpu}": 100 * mean([abs(m / p - 1) for _, p, m in points])})
            study.note(**{f"ridge_low__{kind}__{gpu}": ridge["low"], f"ridge_high__{kind}__{gpu}": ridge["high"]})
        marks = {"base": base, "ridge": ridge["value"], "peak": highest}
        idle = model["parameters"]["idle_w"]["value"]
        study.figure(f"figure9-{kind}-{gpu}", f"{gpu}: power over clock, {kind}", "MHz", "W", {
            "power": ([(f, p) for f, p, _ in points], "points"), "model": ([(f, m) for f, _, m in points], "line")}, [idle], marks)
        energies = [(f, m / f) for f, _, m in points]
        least = min(e for _, e in energies)
        study.figure(f"figure9-energy-{kind}-{gpu}", f"{gpu}: modelled energy over clock, {kind}", "MHz", "of the least",
                     {"P / f": ([(f, e / least) for f, e in energies], "line")}, marks=marks)
        slope = model["parameters"]["voltage_slope_per_mhz"]["value"]
        study.figure(f"figure8-voltage-{kind}-{gpu}", f"{gpu}: core voltage over clock, from the fit, {kind}", "MHz", "of that below the ridge",
                     {"voltage": ([(f, 1 + slope * max(0, f - ridge["value"])) for f in sorted({p[0] for p in points} | {ridge["value"]})], "line")},
                     marks=marks)
        speeds[f"{gpu}, {kind}"] = ([(f, f / highest) for f, _, _ in points], "line")
    study.figure("figure8-speed", "Speed in proportion to the clock", "MHz", "of the highest", speeds)
    study.table("figure9", rows)


def gemm_on(study, gpu):
    """Figures 3, 4, 5 and 7 of one GPU, every configuration at every clock and under every limit: rows of 3 and of 7. Figure 3 has
    seven clocks."""
    study.say(f"going-green: GEMM on {gpu}")
    device = ("--device", f"sim:{gpu}")
    clocks, limits = clocks_and_limits(study, gpu)
    seven = study.problem(f"gemm-seven-{gpu}", gemm(study, gpu, "core_clock_mhz = 7"))
    result = study.ergotune("tune", seven, *device, "--plan", ",".join(PLANS), "--no-store", "-q")
    ways, figure3 = {}, []
    for plan in result["plans"]:
        above, name, best = plan["above_optimum_percent"], plan["plan"], plan["best"]
        ways[name] = best["configuration"]
        figure3.append({"gpu": gpu, "plan": name, "energy_j": best["quantities"]["energy"]["value"], "above_optimum_percent": above,
                        "evaluated": plan["asked"], "space": result["space"]} | best["configuration"])
        note = study.note_searched if name == "model_steered" else study.note
        note(**{f"plan__{name}__{gpu}": above, f"plan_evaluated__{name}__{gpu}": plan["asked"]})
    how_plans_went(study, gpu, {plan["plan"]: plan for plan in result["plans"]})
    papers = {tuple(ways[name].items()) for name in PLANS if name != "model_steered"}
    energies = {f"{row['above_optimum_percent']:.1f}" for row in figure3 if row["plan"] != "model_steered"}
    above = {plan["plan"]: 1 + plan["above_optimum_percent"] / 100 for plan in result["plans"]}
    study.note(plan_space=result["space"], **{
        f"over_global__{name}__{gpu}": percent_above(above[name], above["global_energy"]) for name in PLANS if name.endswith("_then_clocks")}, **{
        f"different_energies__{gpu}": len(energies),
        f"different_configurations__{gpu}": len(papers),
        f"two_stage_as_global__{gpu}": sum(ways[name] == ways["global_energy"] for name in ("race_to_idle_then_clocks", "energy_then_clocks"))})

    whole = study.ergotune("analyse", seven, *device)
    curves = difficulty(study, gpu, "clocks", whole)
    if gpu in ("a100", "rtx_a4000"):
        figure_four(study, gpu, seven, whole)
    if gpu == "titan_rtx":  # in Figure 7 alone, with more clocks
        analyses = [study.ergotune("analyse", problem, *device, "--no-centrality") for problem in (clocks, limits)]
    else:
        analyses = [whole, study.ergotune("analyse", limits, *device)]
        curves |= difficulty(study, gpu, "limits", analyses[1])
        study.figure(f"figure5-{gpu}", f"{gpu}: share of local searches that end within p", "p", "share", curves)
        of_time = [study.numbers[f"{study.name}.centrality_110.{which}.{gpu}"] for which in ("time", "energy_clocks", "energy_limits")]
        study.note(**{f"centrality_time_over_clocks__{gpu}": of_time[0] / of_time[1], f"centrality_time_over_limits__{gpu}": of_time[0] / of_time[2]})
    least_clocks, least_limits = (analysis["quadrants"]["most_efficient"]["energy"] for analysis in analyses)
    excess = percent_above(least_limits, least_clocks)
    study.note(**{f"limits_above_clocks__{gpu}": excess})
    return figure3, {"gpu": gpu, "least_energy_clocks_j": least_clocks, "least_energy_limits_j": least_limits, "limits_above_clocks_percent": excess}


def how_plans_went(study, gpu, plans):
    """Where "energy, then clocks" starts; what leads model_steered to its clock, and what a clock near its ridge would need."""
    first, *_, last = plans["model_steered"]["stages"]
    model = plans["model_steered"]["model"]
    energies = {point["configuration"]["core_clock_mhz"]: point["quantities"]["energy"]["value"]
                for point in plans["global_energy"]["stages"][0]["by_setting"]}
    near = [energy for clock, energy in energies.items() if abs(clock / model["ridge_mhz"] - 1) <= 0.1]
    study.note(**{f"plan_start__{gpu}": plans["energy_then_clocks"]["stages"][0]["best"]["configuration"]["core_clock_mhz"]})
    study.note_searched(**{f"plan_ridge__{gpu}": model["ridge_mhz"], f"plan_clock__{gpu}": first["best"]["configuration"]["core_clock_mhz"],
                           f"plan_at_ridge__{gpu}": percent_above(min(near), min(energies.values())) if near else None,
                           f"plan_fitted__{gpu}": first["asked"], f"plan_neighbours__{gpu}": last["asked"]})


def gemm_figures(study):
    """Figures 3, 4, 5 and 7, two GPUs at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        figure3, figure7 = zip(*pool.map(lambda gpu: gemm_on(study, gpu), GPUS))
    figure3 = [row for rows in figure3 for row in rows]
    study.table("figure3", figure3)
    study.table("figure7", figure7)
    study.bars("figure3", "Least energy found by each way of tuning GEMM", "J", GPUS,
               {plan: [row["energy_j"] for row in figure3 if row["plan"] == plan] for plan in PLANS})
    study.bars("figure7", "Least energy of GEMM under clocks and under power limits", "J", GPUS,
               {what: [row[f"least_energy_{what}_j"] for row in figure7] for what in ("clocks", "limits")})


def difficulty(study, gpu, what, analysis):
    """Curves of Figure 5: of time once, of energy over clocks and over limits."""
    curves = {}
    for name, objective in analysis["centrality"]["objectives"].items():
        if name == "time" and what == "limits":
            continue
        label = "time" if name == "time" else f"energy_{what}"
        curves[label] = ([(c["p"], c["share"]) for c in objective["curve"] if c["p"] <= 2], "line")
        within = [c["share"] for c in objective["curve"] if c["p"] <= 1.1 + 1e-9][-1]
        study.note(**{f"centrality_110__{label}__{gpu}": 100 * within})
    return curves


def figure_four(study, gpu, problem, analysis):
    """Figure 4, of random configurations and the Pareto front, and how many codes the simulated noise cannot tell from the best."""
    store = study.output / f"figure4-{gpu}.db"
    store.unlink(missing_ok=True)
    study.ergotune("tune", problem, "--device", f"sim:{gpu}", "--strategy", "random", "--budget", 2400, "--no-early-stop", "--no-confirm", "-q", "--store", store)
    found = study.rows(store)
    fastest, greenest = (analysis["quadrants"][which] for which in ("fastest", "most_efficient"))
    clock = greenest["configuration"]["core_clock_mhz"]
    _, codes = study.everything(study.problem(f"gemm-codes-{gpu}", gemm(study, gpu, f"core_clock_mhz = [{clock}]")), gpu)
    study.note(**{f"pareto_speed_lost__{gpu}": 100 * (1 - greenest["speed"] / fastest["speed"]),
                  f"pareto_efficiency_gained__{gpu}": percent_above(greenest["efficiency"], fastest["efficiency"]),
                  f"codes_within_noise__{gpu}": sum(r["energy"] < 1.02 * greenest["energy"] for r in codes)})
    work = 2 * 4096**3 / 1e9
    series = {f"{clock:.0f} MHz": ([(work / r["time"], work / r["energy"]) for r in found if r["core_clock_mhz"] == clock], "points")
              for clock in sorted({r["core_clock_mhz"] for r in found})}
    series["Pareto front"] = (sorted((p["speed"], p["efficiency"]) for p in analysis["pareto"]), "line")
    study.figure(f"figure4-{gpu}", f"{gpu}: GEMM", "GFLOP/s", "GFLOP/s per W", series)


def full_load(study):
    """Figure 6: power over the clock that ran, of a load that fills the GPU, under clocks and under power limits."""
    source = (ROOT / "examples/clocks/full_load.toml").read_text().replace('"full_load.', f'"{ROOT}/examples/clocks/full_load.')
    rows = []
    for gpu in ("titan_rtx", "a100", "rtx_a4000"):
        ran = {}
        for name, execution in (("clocks", 'core_clock_mhz = "all"'), ("limits", "power_limit_w = 9")):
            text = source.replace('core_clock_mhz = "all"', execution) + f"power = {load_factor(gpu):.4f}\n"
            _, found = study.everything(study.problem(f"full-load-{name}-{gpu}", text), gpu)
            ran[name] = sorted((r["core_clock"] / 1e6, r["power"], r.get("power_limit_w")) for r in found)
            rows += [{"gpu": gpu, "set": name, "ran_mhz": f, "power_w": p, "limit_w": limit} for f, p, limit in ran[name]]
        clock = profile(gpu)["clock"]
        study.figure(f"figure6-{gpu}", f"{gpu}: full load under clocks and under power limits (dashed)", "MHz", "W", {
            "clocks": ([(f, p) for f, p, _ in ran["clocks"]], "points"), "limits": ([(f, p) for f, p, _ in ran["limits"]], "triangles")},
            sorted({limit for _, _, limit in ran["limits"]}), {"base": clock["base_mhz"], "boost": clock["boost_mhz"]})
        held = [p / limit for f, p, limit in ran["limits"] if p > 0.95 * limit]  # the limit binds
        study.note(**{f"capped_lowest_clock__{gpu}": ran["limits"][0][0], f"lowest_clock__{gpu}": ran["clocks"][0][0],
                      f"highest_sustained__{gpu}": ran["clocks"][-1][0], f"limits__{gpu}": len(ran["limits"]),
                      f"least_power_of_clocks__{gpu}": min(p for _, p, _ in ran["clocks"]), f"least_power_of_limits__{gpu}": min(p for _, p, _ in ran["limits"]),
                      f"limits_that_bind__{gpu}": len(held), f"fixed_above_capped__{gpu}": fixed_above_capped(ran)})
        if held:
            study.note(**{f"capped_power_of_limit_least__{gpu}": 100 * min(held), f"capped_power_of_limit_most__{gpu}": 100 * max(held)})
    study.table("figure6", rows)


def fixed_above_capped(ran):
    """How much more a fixed clock draws than a limit that makes the same clock run, percent, on average over the limits."""
    def at(clock):
        below = max((point for point in ran["clocks"] if point[0] <= clock), default=ran["clocks"][0])
        above = min((point for point in ran["clocks"] if point[0] >= clock), default=ran["clocks"][-1])
        share = (clock - below[0]) / (above[0] - below[0]) if above[0] > below[0] else 0
        return below[1] + share * (above[1] - below[1])

    return mean([percent_above(at(f), p) for f, p, _ in ran["limits"]])


def recorded_gemm(study):
    """What the recorded GEMM on an A100 says of the load: power, and the clock that ran of 1410 MHz under 250 W."""
    text = gzip.decompress(study.recorded("energy", "gemm_A100_898_open.json.gz").read_bytes()).decode()
    rows = [row for row in json.loads(text.rstrip().rstrip(",") + "}}")["cache"].values() if isinstance(row["time"], (int, float))]
    watts = [1000 * row["nvml_energy"] / row["time"] for row in rows]
    study.note(recorded_gemm=len(rows), recorded_gemm_watts=mean(watts), recorded_gemm_clock=mean([row["core_freq"] for row in rows]),
               recorded_gemm_throttled=100 * mean([row["core_freq"] < 0.99 * 1410 for row in rows]))


def radio_kernel(study, name, gpu):
    """A problem of one configuration at every clock that has the paper's TOP/s and power at the highest: both of Table II's "before".
    Time-domain dedispersion is bound by memory, everything else by arithmetic; tensor-core operations are put in as so many of the
    ordinary ones."""
    compute = profile(gpu)["compute"]
    peak, bandwidth = compute["peak_sp_flops"], compute["bandwidth"]
    tops, _, gops_per_watt, _, _ = TABLE_TWO[gpu][KERNELS.index(name)]
    share = min(0.95, tops * 1e12 / peak)
    memory = name == "tdd"
    flops = f"{0.02 * peak * (0.95 if name == 'tcc' else share):.6g}"
    simulation = f"""flops = "{flops}"
bytes = "{0.02 * bandwidth if memory else 0}"
efficiency = "{0.95 if memory or name == 'tcc' else share:.4g}\""""
    watts = 1000 * tops / gops_per_watt

    def problem(power):
        return study.problem(f"{name}-{gpu}", simulated_problem(name, "block = [256]", "block", f"{simulation}\npower = {power:.4f}", work=10000000))

    def drawn(power):
        highest = max(profile(gpu)["clock"].get("core_mhz", [profile(gpu)["clock"].get("core_max_mhz")]))
        found = study.ergotune("measure", problem(power), "--device", f"sim:{gpu}", "--config", json.dumps({"block": 256, "core_clock_mhz": highest}))
        return found["quantities"]["power"]["value"]

    low, high = drawn(0.2), drawn(0.6)  # below any limit, where power is a straight line
    return problem(0.2 + 0.4 * (watts - low) / (high - low))


def table_two(study):
    """Figure 10 and Table II: six kernels at the highest clock, and at the best within 10 % of the profile's ridge."""
    rows = []
    for gpu in MODELLED:
        ridge = profile(gpu)["power"]["ridge_mhz"]
        curves, may_choose = {}, []
        for kernel, (tops, change, gops, gained, clock) in zip(KERNELS, TABLE_TWO[gpu]):
            _, found = study.everything(radio_kernel(study, kernel, gpu), gpu)
            before = max(found, key=lambda r: r["core_clock_mhz"])
            window = [r for r in found if 0.9 * ridge <= r["core_clock_mhz"] <= 1.1 * ridge]
            after = min(window, key=lambda r: r["energy"])
            may_choose += [abs(r["core_clock_mhz"] / clock - 1) <= 0.05 + 1e-9 for r in window]
            rows.append({"gpu": gpu, "kernel": kernel, "gained_percent": percent_above(before["energy"], after["energy"]),
                         "paper_gained_percent": gained,
                         "speed_percent": 100 * (before["time"] / after["time"] - 1), "paper_speed_percent": change,
                         "tuned_mhz": after["core_clock_mhz"], "paper_tuned_mhz": clock, "watts_before": before["power"],
                         "paper_watts_before": 1000 * tops / gops})
            least = min(r["energy"] for r in found)
            curves[kernel] = ([(r["core_clock_mhz"], r["energy"] / least) for r in sorted(found, key=lambda r: r["core_clock_mhz"])], "line")
            study.note(**{f"table2_gained__{gpu}__{kernel}": rows[-1]["gained_percent"], f"table2_speed__{gpu}__{kernel}": rows[-1]["speed_percent"],
                          f"table2_mhz__{gpu}__{kernel}": rows[-1]["tuned_mhz"]})
        own = [r for r in rows if r["gpu"] == gpu]
        study.note(**{f"table2_blind__{gpu}": 100 * mean(may_choose), f"kept__profile__{gpu}": 100 * len(window) / len(found)})
        for what in ("gained_percent", "speed_percent"):
            study.note(**{f"table2_{what}_mean__{gpu}": mean([r[what] for r in own]),
                          f"table2_{what}_correlation__{gpu}": correlation([r[what] for r in own], [r[f"paper_{what}"] for r in own])})
        study.figure(f"figure10-{gpu}", f"{gpu}: modelled energy of six kernels", "MHz", "of the least", curves)
    study.table("table2", rows)
    for name, what in (("gain", "gained_percent"), ("loss", "speed_percent")):
        values, papers = [r[what] for r in rows], [r[f"paper_{what}"] for r in rows]
        middle, deviation = mean_and_deviation(values)
        study.note(**{f"table2_{name}_mean": middle, f"table2_{name}_deviation": deviation, f"table2_{name}_least": min(values),
                      f"table2_{name}_most": max(values), f"table2_{name}_correlation": correlation(values, papers),
                      f"table2_{name}_mean_difference": mean([abs(a - b) for a, b in zip(values, papers)])})


def readings(study):
    """Figure 2 on a GPU: power over time as its sensors tell it, around a matrix product that begins at 0."""
    found = study.ergotune("trace", ROOT / "examples/sgemm/sgemm.toml", "--device", study.device, "--seconds", 3, "--before", 1,
                           "--after", 1, "--csv", study.output / "figure2.csv", "--figure", study.output / "figure2.svg")
    for series in found["power"]:
        name = series["series"].split("/")[-1].replace("-", "_")
        study.note(**{f"settling_seconds__{name}": series["settling_seconds"], f"final_watts__{name}": series["final"],
                      f"readings_per_second__{name}": series["values"] / 5})


# The six kernels: problem file, leading metric, in GOP/s a unit of it.
RADIO = {"gridder": ("idg/gridder.toml", "gops", 1), "degridder": ("idg/degridder.toml", "gops", 1),
         "fdd": ("fourier_dedispersion/fourier_dedispersion.toml", "gops", 1), "tdd": ("dedispersion/dedispersion.toml", "gops", 1),
         "tcc": ("tensor_correlator/tensor_correlator.toml", "tops", 1000), "lofar": ("correlator/correlator.toml", "gflops", 1)}


def before_clocks(study):
    """Table II's "before" on a GPU: the six kernels tuned for time, at the clocks as they are."""
    rows = []
    for kernel, (file, metric, unit) in RADIO.items():
        problem = ROOT / "examples" / file
        tuned = study.ergotune("tune", problem, "--device", study.device, "--objective", f"max {metric}", "--budget", "6s",
                               "--no-confirm", "--no-early-stop", "--no-store", "-q")
        found = study.measure(problem, tuned["best"]["configuration"])
        if not found:
            continue
        rate = found["metrics"][metric] * unit / 1000
        efficiency = found["metrics"]["gflops_per_watt" if metric == "gflops" else "gops_per_watt"]
        rows.append({"kernel": kernel, "tops": rate, "gops_per_watt": efficiency, "evaluated": tuned["evaluated"],
                     "paper_a100_tops": TABLE_TWO["a100"][KERNELS.index(kernel)][0],
                     "paper_a100_gops_per_watt": TABLE_TWO["a100"][KERNELS.index(kernel)][2]})
        study.note(**{f"tops__{kernel}": rate, f"gops_per_watt__{kernel}": efficiency})
    study.table("table2", rows)


def time_and_energy(study):
    """Whether the fastest configuration needs the least energy, at the clocks as they are: of each kernel the five fastest that six
    seconds of tuning find, and GEMM in the paper's space."""
    rows = []
    for kernel, file in (*((kernel, file) for kernel, (file, _, _) in RADIO.items()), ("gemm", "gemm/gemm_going_green.toml")):
        problem = ROOT / "examples" / file
        tuned = study.ergotune("tune", problem, "--device", study.device, "--objective", "time", "--budget", "6s", "--no-confirm",
                               "--no-early-stop", "--no-store", "-q")
        fastest = [row["configuration"] for row in tuned["top"][:5]]
        found = [(one["quantities"]["time"]["value"], one["quantities"]["energy"]["value"], one["quantities"]["energy"]["half_width"])
                 for one in (study.measure(problem, configuration, "--no-verify") for configuration in fastest) if one]
        if not found:
            continue
        quickest, greenest = min(found), min(found, key=lambda one: one[1])
        rows.append({"kernel": kernel, "configurations": len(found), "fastest_s": quickest[0], "fastest_j": quickest[1], "least_energy_s": greenest[0],
                     "least_energy_j": greenest[1], "apart": quickest[1] - quickest[2] > greenest[1] + greenest[2]})
        study.note(**{f"energy_saved__{kernel}": 100 * (1 - greenest[1] / quickest[1]), f"speed_given_up__{kernel}": 100 * (1 - quickest[0] / greenest[0]),
                      f"energy_apart__{kernel}": int(rows[-1]["apart"])})
    study.table("time-and-energy", rows)


def accuracy(study, objective="energy"):
    """Energy against accuracy, what the slides name next: a sum in single, compensated and double precision."""
    store = study.output / "accuracy.db"
    store.unlink(missing_ok=True)
    study.ergotune("tune", ROOT / "examples/reduction/reduction.toml", "--device", study.device, "--objective", f"pareto({objective}, error)",
                   "--budget", "30s", "--no-confirm", "-q", "--store", store)
    table = study.output / "accuracy.csv"
    study.ergotune("export", store, "--format", "csv", "-o", table)
    with open(table, newline="") as file:
        found = [row for row in csv.DictReader(file) if row["status"] == "ok" and row[objective]]
    series, names = {}, ("single", "compensated", "double")
    for sums, name in enumerate(names):
        own = [row for row in found if int(float(row["sums"])) == sums]
        if not own:
            continue
        best = min(own, key=lambda row: float(row[objective]))
        study.note(**{f"accuracy_{objective}__{name}": float(best[objective]), f"accuracy_error__{name}": float(best["error"])})
        series[name] = ([(math.log10(max(float(row["error"]), 1e-17)), float(row[objective])) for row in own], "points")
    study.note(accuracy_configurations=len(found))
    study.figure("accuracy", f"Sum of an array: {objective} over the error", "log10 of the relative error", objective, series)


def run(study):
    if study.device:
        study.go_through([("Figure 2, power over time", readings), ("Table II, six kernels", before_clocks),
                          ("time against energy", time_and_energy), ("energy against accuracy", accuracy)])
    else:
        study.go_through([("Figures 8 and 9, ridges", ridges), ("the load of the recorded GEMM", recorded_gemm),
                          ("Figures 3, 4, 5 and 7, GEMM", gemm_figures), ("Figure 6, full load", full_load),
                          ("Figure 10 and Table II, six kernels", table_two)])
