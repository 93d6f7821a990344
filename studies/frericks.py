"""Frericks (thesis, 2024): energy of five kernels on a Jetson Xavier NX, its Figures 12 to 14 and their like, simulated."""

from study import percent_above

BOARD = "jetson_xavier_nx"
PLANS = ["race_to_idle", "block_to_freq", "freq_to_block", "global_energy"]

# The thesis's block shapes (4, 48, 6, 21 and 4 of them). How efficiency and traffic depend on them is assumed: a parallel
# kernel likes large blocks, one with branches small ones.
SHAPES = {
    "matmul": ("block = [64, 256, 576, 1024]", "block",
               'flops = "2 * 4096**3"\nbytes = "4 * 2 * 4096**3 / (2 * sqrt(block))"\nefficiency = "0.10 + 0.03 * (block >= 1024)"'),
    "rgb2gray": ("x = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]\ny = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]", "x * y",
                 'flops = "5 * 20000**2"\nbytes = "16 * 20000**2 * (1 + 1 / x)"\nefficiency = "0.5"'),
    "raycasting": ("block = [32, 64, 128, 256, 512, 1024]", "block",
                   'flops = "4e10"\nbytes = "2e9"\nefficiency = "0.3 / (1 + 0.08 * log2(block // 32 + 1))"'),
    "bandpass": ("x = [1, 2, 4, 8, 16, 32]\ny = [32, 64, 128, 256, 512, 1024]", "x * y",
                 'flops = "1e9"\nbytes = "1.2e9 * (1 + 0.02 * x)"\nefficiency = "0.4 / (1 + 0.05 * log2(x * y // 32 + 1))"'),
    "correlator": ("block = [128, 192, 448, 832]", "block",
                   'flops = "3e10"\nbytes = "5e8"\nefficiency = "0.30 + 0.12 * (block == 448) + 0.1 * (block == 192)"'),
}
LIMITS = {"rgb2gray": "32 <= x * y <= 1024", "bandpass": "x * y <= 1024"}


def problem(name):
    parameters, threads, simulation = SHAPES[name]
    limit = f'restrictions = ["{LIMITS[name]}"]\n' if name in LIMITS else ""
    return f"""name = "{name}"
objective = "energy"
{limit}[parameters]
{parameters}
[execution]
core_clock_mhz = "all"
[kernel]
function = "{name}"
[kernel.source.opencl]
text = "kernel void {name}() {{}}"
[kernel.launch]
global = [1000000]
block = ["{threads}"]
[simulation]
{simulation}
registers = 32
"""


def run(study):
    rows, excess, left_out = [], [], []
    for name in SHAPES:
        file = study.problem(name, problem(name))
        compared = study.ergotune("tune", file, "--device", f"sim:{BOARD}", "--plan", ",".join(PLANS), "--no-store", "-q")
        above = {plan["plan"]: plan["above_optimum_percent"] for plan in compared["plans"]}
        evaluated = {plan["plan"]: plan["evaluated"] for plan in compared["plans"]}
        store, found = study.everything(file, BOARD)
        fastest, greenest = (min(found, key=lambda r: r[what]) for what in ("time", "energy"))
        row = {"kernel": name, "configurations": compared["space"], **{f"{plan}_above_percent": above[plan] for plan in PLANS},
               "left_out_percent": 100 * (1 - evaluated["block_to_freq"] / compared["space"]),
               "efficiency_gained_percent": percent_above(fastest["energy"], greenest["energy"]),
               "speed_change_percent": 100 * (fastest["time"] / greenest["time"] - 1), "best_mhz": greenest["core_clock_mhz"],
               "provenance": "simulated"}
        rows.append(row)
        excess.append(above["race_to_idle"])
        left_out.append(row["left_out_percent"])
        study.note(**{f"{what}__{name}": row[what] for what in row if what not in ("kernel", "provenance")})
        clocks = sorted({r["core_clock_mhz"] for r in found})
        study.figure(f"clocks-{name}", f"{name}: least energy at each clock (simulated)", "MHz", "J", {
            "energy": ([(f, min(r["energy"] for r in found if r["core_clock_mhz"] == f)) for f in clocks], "line")})
        study.figure(f"tradeoff-{name}", f"{name}: speed against efficiency (simulated)", "1 / s", "1 / J", {
            "configurations": ([(1 / r["time"], 1 / r["energy"]) for r in found], "points")})
    study.table("strategies", rows)
    two_stage = [row[f"{plan}_above_percent"] for row in rows for plan in ("block_to_freq", "freq_to_block")]
    study.note(race_to_idle_mean=sum(excess) / len(excess), race_to_idle_least=min(excess), race_to_idle_most=max(excess),
               two_stage_most=max(two_stage), left_out_mean=sum(left_out) / len(left_out), left_out_least=min(left_out),
               left_out_most=max(left_out), best_clock_least=min(r["best_mhz"] for r in rows),
               best_clock_most=max(r["best_mhz"] for r in rows))
