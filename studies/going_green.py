"""Going Green (Schoonhoven et al., PMBS 2022): its Figures 3 to 10 and Table II, on simulated boards and recorded powers."""

from study import ROOT, mean_and_deviation, percent_above, shared_data

BOARDS = ["a100", "rtx_a4000", "rtx_a6000", "titan_rtx"]
MODELLED = ["a100", "rtx_a4000", "titan_rtx", "v100"]
PLANS = ["race_to_idle", "energy_at_max_clock", "race_to_idle_then_clocks", "energy_then_clocks", "global_energy", "model_steered"]

# Table II, "before": TOP/s on each board. They say how much of its peak a kernel reaches, and are put in.
BEFORE = {
    "a100": {"gridder": 16.3, "degridder": 14.5, "fdd": 9.7, "tdd": 3.4, "tcc": 148.4, "lofar": 12.2},
    "rtx_a4000": {"gridder": 11.0, "degridder": 10.2, "fdd": 8.3, "tdd": 1.5, "tcc": 57.2, "lofar": 8.7},
    "titan_rtx": {"gridder": 14.3, "degridder": 13.7, "fdd": 10.2, "tdd": 2.1, "tcc": 34.7, "lofar": 12.8},
    "v100": {"gridder": 11.6, "degridder": 11.0, "fdd": 7.4, "tdd": 2.2, "tcc": 34.2, "lofar": 9.9},
}


def gemm(clocks="core_clock_mhz = 7"):
    """The simulated matrix product with another [execution] table."""
    text = (ROOT / "examples/clocks/simulated_gemm.toml").read_text()
    return text.replace("core_clock_mhz = 15", clocks)


def ridges(study):
    """Figures 8 and 9: the clock from which voltage rises, and what +-10 % of it leaves out."""
    rows = []
    sources = [(board, "simulated", ("--device", f"sim:{board}", "--no-store")) for board in MODELLED]
    data = shared_data()
    if data:
        for board, name in (("a100", "NVIDIA_A100-PCIE-40GB"), ("rtx_a4000", "NVIDIA_RTX_A4000")):
            sources.append((board, "recorded", ("--from", data / "power" / f"synthetic_fp32_cache_{name}.json")))
    for board, kind, options in sources:
        model = study.ergotune("model", *options)
        ridge = model["ridge_mhz"]
        rows.append({"board": board, "provenance": kind, "ridge_mhz": ridge["value"], "low_mhz": ridge["low"],
                     "high_mhz": ridge["high"], "clocks_left_out_percent": 100 * model["removed_share"]})
        study.note(**{f"ridge__{kind}__{board}": ridge["value"], f"left_out__{kind}__{board}": 100 * model["removed_share"]})
        if kind == "recorded":
            study.note(**{f"ridge_low__{kind}__{board}": ridge["low"], f"ridge_high__{kind}__{board}": ridge["high"]})
        points = sorted((s["clock_mhz"], s["power_w"], s["modelled_power_w"]) for s in model["samples"])
        study.figure(f"figure9-{kind}-{board}", f"{board}: power over clock ({kind})", "MHz", "W", {
            "power": ([(f, p) for f, p, _ in points], "points"), "model": ([(f, m) for f, _, m in points], "line")})
    study.table("figure9", rows)


def plans(study):
    """Figure 3: least energy by each way of tuning."""
    problem, rows = study.problem("gemm7", gemm()), []
    for board in BOARDS:
        result = study.ergotune("tune", problem, "--device", f"sim:{board}", "--plan", ",".join(PLANS), "--no-store", "-q")
        for plan in result["plans"]:
            above, name = plan["above_optimum_percent"], plan["plan"]
            rows.append({"board": board, "plan": name, "above_optimum_percent": above, "evaluated": plan["evaluated"],
                         "space": result["space"], "provenance": "simulated"})
            study.note(**{f"plan__{name}__{board}": above, f"plan_evaluated__{name}__{board}": plan["evaluated"]})
        study.note(plan_space=result["space"])
    study.table("figure3", rows)


def trade_offs(study):
    """Figures 4 and 5: speed against efficiency, and how hard the two are to optimise."""
    problem = study.problem("gemm7", gemm())
    for board in ("a100", "rtx_a4000"):
        store, rows = study.everything(problem, board)
        analysis = study.ergotune("analyse", store)
        fastest, greenest = (analysis["quadrants"][which] for which in ("fastest", "most_efficient"))
        study.note(**{f"pareto_speed_lost__{board}": 100 * (1 - greenest["speed"] / fastest["speed"]),
                      f"pareto_efficiency_gained__{board}": percent_above(greenest["efficiency"], fastest["efficiency"])})
        study.figure(f"figure4-{board}", f"{board}: GEMM (simulated)", "GFLOP/s", "GFLOP/s per W", {
            "configurations": ([(2 * 4096**3 / r["time"] / 1e9, 2 * 4096**3 / r["energy"] / 1e9) for r in rows], "points"),
            "Pareto front": (sorted((p["speed"], p["efficiency"]) for p in analysis["pareto"]), "line")})
        curves = {}
        for name, objective in analysis["centrality"]["objectives"].items():
            curves[name] = ([(c["p"], c["share"]) for c in objective["curve"]], "line")
            within = [c["share"] for c in objective["curve"] if c["p"] <= 1.1 + 1e-9][-1]
            study.note(**{f"centrality_110__{name}__{board}": 100 * within})
        study.figure(f"figure5-{board}", f"{board}: share of local searches that end within p (simulated)", "p", "share", curves)


def capping(study):
    """Figure 7: seven power limits against seven clocks."""
    rows = []
    for board in BOARDS:
        least = {}
        for name, text in (("clocks", "core_clock_mhz = 7"), ("limits", "power_limit_w = 7")):
            _, found = study.everything(study.problem(f"gemm-{name}", gemm(text)), board)
            least[name] = min(r["energy"] for r in found)
        excess = percent_above(least["limits"], least["clocks"])
        rows.append({"board": board, "least_energy_clocks_j": least["clocks"], "least_energy_limits_j": least["limits"],
                     "limits_above_clocks_percent": excess, "provenance": "simulated"})
        study.note(**{f"limits_above_clocks__{board}": excess})
    study.table("figure7", rows)


def radio_kernel(name, board, peak, bandwidth):
    """A problem of one configuration at every clock that reaches the paper's TOP/s at the highest. Time-domain dedispersion is
    bound by memory, everything else by arithmetic; tensor-core operations are put in as so many of the ordinary ones."""
    share = min(0.95, BEFORE[board][name] * 1e12 / peak)
    memory = name == "tdd"
    flops = f"{0.02 * peak * (0.95 if name == 'tcc' else share):.6g}"
    return f"""name = "{name}"
objective = "energy"
[parameters]
block = [256]
[execution]
core_clock_mhz = "all"
[kernel]
function = "{name}"
[kernel.source.opencl]
text = "kernel void {name}() {{}}"
[kernel.launch]
global = [10000000]
block = ["block"]
[simulation]
flops = "{flops}"
bytes = "{0.02 * bandwidth if memory else 0}"
registers = 32
efficiency = "{0.95 if memory or name == 'tcc' else share:.4g}"
"""


def table_two(study):
    """Figure 10 and Table II: six kernels at the highest clock, and at the best within 10 % of the ridge."""
    import tomllib

    rows, gains, losses = [], [], []
    for board in MODELLED:
        profile = tomllib.loads((ROOT / f"profiles/{board}.toml").read_text())["compute"]
        ridge = study.numbers[f"{study.name}.ridge.simulated.{board}"]
        curves = {}
        for kernel in BEFORE[board]:
            text = radio_kernel(kernel, board, profile["peak_sp_flops"], profile["bandwidth"])
            _, found = study.everything(study.problem(kernel, text), board)
            before = max(found, key=lambda r: r["core_clock_mhz"])
            after = min((r for r in found if 0.9 * ridge <= r["core_clock_mhz"] <= 1.1 * ridge), key=lambda r: r["energy"])
            gain = percent_above(before["energy"], after["energy"])
            loss = 100 * (before["time"] / after["time"] - 1)
            rows.append({"board": board, "kernel": kernel, "efficiency_gained_percent": gain, "speed_change_percent": loss,
                         "tuned_mhz": after["core_clock_mhz"], "provenance": "simulated"})
            gains.append(gain)
            losses.append(loss)
            curves[kernel] = ([(r["core_clock_mhz"], r["energy"]) for r in sorted(found, key=lambda r: r["core_clock_mhz"])], "line")
        own = [r for r in rows if r["board"] == board]
        for what in ("efficiency_gained_percent", "speed_change_percent"):
            study.note(**{f"table2_{what}_mean__{board}": sum(r[what] for r in own) / len(own)})
        study.note(**{f"table2_clock__{board}": sorted(r["tuned_mhz"] for r in own)[len(own) // 2]})
        study.figure(f"figure10-{board}", f"{board}: energy of six kernels (simulated)", "MHz", "J", curves)
    study.table("table2", rows)
    for name, values in (("gain", gains), ("loss", losses)):
        mean, deviation = mean_and_deviation(values)
        study.note(**{f"table2_{name}_mean": mean, f"table2_{name}_deviation": deviation, f"table2_{name}_least": min(values),
                      f"table2_{name}_most": max(values)})


def run(study):
    ridges(study)
    plans(study)
    trade_offs(study)
    capping(study)
    table_two(study)
