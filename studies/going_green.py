"""Going Green (Schoonhoven et al., PMBS 2022): its Figures 2 to 10 and Table II, on simulated boards and recorded powers."""

from study import RECORDED, ROOT, mean, mean_and_deviation, percent_above, simulated_problem

MEASURES = True  # a part of it runs on real boards

BOARDS = ["a100", "rtx_a4000", "rtx_a6000", "titan_rtx"]
MODELLED = ["a100", "rtx_a4000", "titan_rtx", "v100"]
PLANS = ["race_to_idle", "energy_at_max_clock", "race_to_idle_then_clocks", "energy_then_clocks", "global_energy", "model_steered"]

# Table II: TOP/s before and after, GOPs/W before and after, tuned clock. What is before in TOP/s says how much of its peak a kernel
# reaches on each board, and is put in; the rest is what the study's figures stand beside.
KERNELS = ["gridder", "degridder", "fdd", "tdd", "tcc", "lofar"]
TABLE_TWO = {
    "a100": [(16.3, 12.0, 64.7, 102.6, 1035), (14.5, 10.7, 59.8, 97.5, 1035), (9.7, 7.3, 62.2, 92.8, 1035),
             (3.4, 2.5, 13.3, 21.5, 1035), (148.4, 135.2, 684.8, 1264.2, 1035), (12.2, 10.7, 58.9, 125.8, 1035)],
    "rtx_a4000": [(11.0, 8.1, 77.6, 107.5, 1200), (10.2, 9.4, 90.8, 131.6, 1470), (8.3, 6.7, 77.6, 111.9, 1290),
                  (1.5, 1.1, 12.9, 17.2, 1200), (57.2, 55.2, 571.2, 606.8, 1290), (8.7, 8.4, 98.9, 119.3, 1470)],
    "titan_rtx": [(14.3, 9.0, 55.2, 68.6, 1260), (13.7, 8.2, 48.4, 65.6, 1155), (10.2, 5.5, 39.9, 59.9, 1050),
                  (2.1, 1.3, 8.0, 12.1, 1050), (34.7, 23.4, 140.5, 209.5, 1155), (12.8, 7.2, 51.5, 78.0, 1155)],
    "v100": [(11.6, 9.5, 59.6, 73.6, 1110), (11.0, 8.8, 61.7, 74.2, 1110), (7.4, 6.0, 58.6, 69.2, 1110),
             (2.2, 1.3, 11.6, 15.7, 1110), (34.2, 27.7, 260.8, 301.5, 1110), (9.9, 7.6, 74.7, 86.8, 1110)],
}


def gemm(study, board, what="clocks"):
    """The simulated matrix product at 7 clocks or under 7 power limits; on the Titan RTX at 20 and under 9, as in the paper."""
    clocks, limits = (20, 9) if board == "titan_rtx" else (7, 7)
    execution = f"core_clock_mhz = {clocks}" if what == "clocks" else f"power_limit_w = {limits}"
    text = (ROOT / "examples/clocks/simulated_gemm.toml").read_text().replace("core_clock_mhz = 15", execution)
    return study.problem(f"gemm-{what}-{board}", text)


def ridges(study):
    """Figures 8 and 9: the clock from which voltage rises, what +-10 % of it leaves out, power and energy over the clock."""
    rows, voltages, speeds = [], {}, {}
    sources = [(board, "simulated", ("--device", f"sim:{board}", "--no-store")) for board in MODELLED]
    for board, name in (("a100", "NVIDIA_A100-PCIE-40GB"), ("rtx_a4000", "NVIDIA_RTX_A4000")):
        sources.append((board, "recorded", ("--from", RECORDED / f"power/synthetic_fp32_cache_{name}.json")))
    for board, kind, options in sources:
        model = study.ergotune("model", *options)
        ridge, best, left_out = model["ridge_mhz"], model["optimal_clock_mhz"]["value"], 100 * model["removed_share"]
        points = sorted((s["clock_mhz"], s["power_w"], s["modelled_power_w"]) for s in model["samples"])
        highest = points[-1][0]
        rows.append({"board": board, "provenance": kind, "ridge_mhz": ridge["value"], "low_mhz": ridge["low"],
                     "high_mhz": ridge["high"], "optimal_mhz": best, "highest_mhz": highest, "clocks_left_out_percent": left_out})
        study.note(**{f"ridge__{kind}__{board}": ridge["value"], f"left_out__{kind}__{board}": left_out,
                      f"optimal_clock__{kind}__{board}": best, f"ridge_of_highest__{kind}__{board}": 100 * ridge["value"] / highest})
        if kind == "recorded":
            study.note(**{f"ridge_low__{kind}__{board}": ridge["low"], f"ridge_high__{kind}__{board}": ridge["high"]})
        study.figure(f"figure9-{kind}-{board}", f"{board}: power over clock, {kind}", "MHz", "W", {
            "power": ([(f, p) for f, p, _ in points], "points"), "model": ([(f, m) for f, _, m in points], "line")})
        energies = [(f, m / f) for f, _, m in points]
        least = min(e for _, e in energies)
        study.figure(f"figure9-energy-{kind}-{board}", f"{board}: modelled energy over clock, {kind}", "MHz", "of the least",
                     {"P / f": ([(f, e / least) for f, e in energies], "line")})
        slope = model["parameters"]["voltage_slope_per_mhz"]["value"]
        label = f"{board}, {kind}"
        voltages[label] = ([(f, 1 + slope * max(0, f - ridge["value"])) for f, _, _ in points], "line")
        speeds[label] = ([(f, f / highest) for f, _, _ in points], "line")
    study.figure("figure8-voltage", "Core voltage over clock, from the fits", "MHz", "of that below the ridge", voltages)
    study.figure("figure8-speed", "Speed in proportion to the clock", "MHz", "of the highest", speeds)
    study.table("figure9", rows)


def plans(study):
    """Figure 3: least energy by each way of tuning. Seven clocks on every board."""
    problem, rows, energies = gemm(study, "all"), [], {plan: [] for plan in PLANS}
    for board in BOARDS:
        result = study.ergotune("tune", problem, "--device", f"sim:{board}", "--plan", ",".join(PLANS), "--no-store", "-q")
        for plan in result["plans"]:
            above, name = plan["above_optimum_percent"], plan["plan"]
            energies[name].append(plan["best"]["quantities"]["energy"]["value"])
            rows.append({"board": board, "plan": name, "above_optimum_percent": above, "evaluated": plan["asked"],
                         "space": result["space"], "provenance": "simulated"})
            study.note(**{f"plan__{name}__{board}": above, f"plan_evaluated__{name}__{board}": plan["asked"]})
        study.note(plan_space=result["space"])
    study.table("figure3", rows)
    study.bars("figure3", "Least energy found by each way of tuning GEMM", "J", BOARDS, energies)


def trade_offs(study):
    """Figures 4, 5 and 7: speed against efficiency, how hard the two are to optimise, and power limits against clocks."""
    rows, least = [], {"clocks": [], "limits": []}
    for board in BOARDS:
        curves = {}
        for what in ("clocks", "limits"):
            store, found = study.everything(gemm(study, board, what), board)
            least[what].append(min(r["energy"] for r in found))
            if board != "titan_rtx":  # which is in neither Figure 4 nor 5
                analysis = study.ergotune("analyse", store)
                curves |= difficulty(study, board, what, analysis)
                if what == "clocks":
                    figure_four(study, board, found, analysis)
        if curves:
            study.figure(f"figure5-{board}", f"{board}: share of local searches that end within p", "p", "share", curves)
        excess = percent_above(least["limits"][-1], least["clocks"][-1])
        rows.append({"board": board, "least_energy_clocks_j": least["clocks"][-1], "least_energy_limits_j": least["limits"][-1],
                     "limits_above_clocks_percent": excess})
        study.note(**{f"limits_above_clocks__{board}": excess})
    study.table("figure7", rows)
    study.bars("figure7", "Least energy of GEMM under clocks and under power limits", "J", BOARDS, least)


def difficulty(study, board, what, analysis):
    """Curves of Figure 5: of time once, of energy over clocks and over limits."""
    curves = {}
    for name, objective in analysis["centrality"]["objectives"].items():
        if name == "time" and what == "limits":
            continue
        label = "time" if name == "time" else f"energy_{what}"
        curves[label] = ([(c["p"], c["share"]) for c in objective["curve"]], "line")
        within = [c["share"] for c in objective["curve"] if c["p"] <= 1.1 + 1e-9][-1]
        study.note(**{f"centrality_110__{label}__{board}": 100 * within})
    return curves


def figure_four(study, board, found, analysis):
    fastest, greenest = (analysis["quadrants"][which] for which in ("fastest", "most_efficient"))
    study.note(**{f"pareto_speed_lost__{board}": 100 * (1 - greenest["speed"] / fastest["speed"]),
                  f"pareto_efficiency_gained__{board}": percent_above(greenest["efficiency"], fastest["efficiency"])})
    work = 2 * 4096**3 / 1e9
    clocks = sorted({r["core_clock_mhz"] for r in found})[:: -(-len({r["core_clock_mhz"] for r in found}) // 7)]
    series = {f"{clock:.0f} MHz": ([(work / r["time"], work / r["energy"]) for r in found if r["core_clock_mhz"] == clock], "points")
              for clock in clocks}
    series["Pareto front"] = (sorted((p["speed"], p["efficiency"]) for p in analysis["pareto"]), "line")
    study.figure(f"figure4-{board}", f"{board}: GEMM", "GFLOP/s", "GFLOP/s per W", series)


def full_load(study):
    """Figure 6: power over the clock that ran, of a load that fills the board, under clocks and under power limits."""
    source = (ROOT / "examples/clocks/full_load.toml").read_text().replace('"full_load.', f'"{ROOT}/examples/clocks/full_load.')
    rows = []
    for board in ("titan_rtx", "a100", "rtx_a4000"):
        curves, ran = {}, {}
        for name, execution in (("clocks", 'core_clock_mhz = "all"'), ("limits", "power_limit_w = 9")):
            text = source.replace('core_clock_mhz = "all"', execution)
            _, found = study.everything(study.problem(f"full-load-{name}", text), board)
            ran[name] = sorted((r["core_clock"] / 1e6, r["power"], r.get("power_limit_w")) for r in found)
            curves[name] = ([(f, p) for f, p, _ in ran[name]], "points")
            rows += [{"board": board, "set": name, "ran_mhz": f, "power_w": p, "limit_w": limit} for f, p, limit in ran[name]]
        study.figure(f"figure6-{board}", f"{board}: full load under clocks and under power limits", "MHz", "W", curves)
        held = [p / limit for f, p, limit in ran["limits"] if f < ran["limits"][-1][0] - 1]  # where the limit binds
        study.note(**{f"capped_lowest_clock__{board}": ran["limits"][0][0], f"lowest_clock__{board}": ran["clocks"][0][0],
                      f"highest_sustained__{board}": ran["clocks"][-1][0]})
        if held:
            study.note(**{f"capped_power_of_limit_least__{board}": 100 * min(held), f"capped_power_of_limit_most__{board}": 100 * max(held)})
    study.table("figure6", rows)


def radio_kernel(name, board, peak, bandwidth):
    """A problem of one configuration at every clock that reaches the paper's TOP/s at the highest. Time-domain dedispersion is
    bound by memory, everything else by arithmetic; tensor-core operations are put in as so many of the ordinary ones."""
    share = min(0.95, TABLE_TWO[board][KERNELS.index(name)][0] * 1e12 / peak)
    memory = name == "tdd"
    flops = f"{0.02 * peak * (0.95 if name == 'tcc' else share):.6g}"
    return simulated_problem(name, "block = [256]", "block", f"""flops = "{flops}"
bytes = "{0.02 * bandwidth if memory else 0}"
efficiency = "{0.95 if memory or name == 'tcc' else share:.4g}\"""", work=10000000)


def table_two(study):
    """Figure 10 and Table II: six kernels at the highest clock, and at the best within 10 % of the ridge."""
    import tomllib

    rows = []
    for board in MODELLED:
        profile = tomllib.loads((ROOT / f"profiles/{board}.toml").read_text())["compute"]
        ridge = study.numbers[f"{study.name}.ridge.simulated.{board}"]
        curves = {}
        for kernel, (tops, tops_after, gops, gops_after, clock) in zip(KERNELS, TABLE_TWO[board]):
            text = radio_kernel(kernel, board, profile["peak_sp_flops"], profile["bandwidth"])
            _, found = study.everything(study.problem(kernel, text), board)
            before = max(found, key=lambda r: r["core_clock_mhz"])
            after = min((r for r in found if 0.9 * ridge <= r["core_clock_mhz"] <= 1.1 * ridge), key=lambda r: r["energy"])
            rows.append({"board": board, "kernel": kernel, "gained_percent": percent_above(before["energy"], after["energy"]),
                         "paper_gained_percent": percent_above(gops_after, gops),
                         "speed_percent": 100 * (before["time"] / after["time"] - 1), "paper_speed_percent": percent_above(tops_after, tops),
                         "tuned_mhz": after["core_clock_mhz"], "paper_tuned_mhz": clock})
            least = min(r["energy"] for r in found)
            curves[kernel] = ([(r["core_clock_mhz"], r["energy"] / least) for r in sorted(found, key=lambda r: r["core_clock_mhz"])], "line")
            study.note(**{f"table2_gained__{board}__{kernel}": rows[-1]["gained_percent"], f"table2_speed__{board}__{kernel}": rows[-1]["speed_percent"]})
        own = [r for r in rows if r["board"] == board]
        for what in ("gained_percent", "speed_percent"):
            study.note(**{f"table2_{what}_mean__{board}": mean([r[what] for r in own])})
        study.note(**{f"table2_clock__{board}": sorted(r["tuned_mhz"] for r in own)[len(own) // 2]})
        study.figure(f"figure10-{board}", f"{board}: modelled energy of six kernels", "MHz", "of the least", curves)
    study.table("table2", rows)
    for name, what in (("gain", "gained_percent"), ("loss", "speed_percent")):
        values = [r[what] for r in rows]
        middle, deviation = mean_and_deviation(values)
        study.note(**{f"table2_{name}_mean": middle, f"table2_{name}_deviation": deviation, f"table2_{name}_least": min(values),
                      f"table2_{name}_most": max(values)})


def readings(study):
    """Figure 2 on a board: power over time as its sensors tell it, around a matrix product that begins at 0."""
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
    """Table II's "before" on a board: the six kernels tuned for time, at the clocks as they are."""
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


def run(study):
    if study.device:
        study.go_through([("Figure 2, power over time", readings), ("Table II, six kernels", before_clocks)])
    else:
        study.go_through([("Figures 8 and 9, ridges", ridges), ("Figure 3, ways of tuning", plans),
                          ("Figures 4, 5 and 7, trade-offs", trade_offs), ("Figure 6, full load", full_load),
                          ("Figure 10 and Table II, six kernels", table_two)])
