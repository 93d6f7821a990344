"""Guerreiro, Ilic, Roma, Tomas (PDP 2015): tuning several concurrent kernels. Figures 2 to 4 and Table IV on simulated boards: how
far occupancy reduces a space, and how many sets `coordinate` runs.

The kernels are models: flops, bytes, registers and shared memory of one launch, and an efficiency over the block size that is
assumed such that each kernel alone is best where the paper found it; spaces, boards and clocks are the paper's.
"""

import json

from study import percent_above

POWERS = {"streamcluster": [2**i for i in range(1, 11)], "particlefilter": [2**i for i in range(1, 10)],
          "lud": [2**i for i in range(1, 6)], "hotspot": [2**i for i in range(1, 6)], "matrixmul": [2**i for i in range(1, 6)]}
SQUARE = {"lud", "hotspot", "matrixmul"}
#: flops, bytes, registers, best block (threads) and what a factor of two from it costs (share), as assumed
MODELS = {"streamcluster": (2.0e10, 3.0e9, 24, 128, 0.02), "particlefilter": (4.0e10, 0.5e9, 22, 128, 0.02),
          "lud": (4.6e10, 2.0e9, 24, 256, 0.08), "hotspot": (1.0e10, 2.5e9, 30, 256, 0.05),
          "matrixmul": (1.4e11, 4.0e9, 28, 1024, 0.10)}
#: Table IV
ROWS = [(["streamcluster"], "k20c"), (["streamcluster"], "k40c"), (["particlefilter"], "k20c"), (["particlefilter"], "k40c"),
        (["lud"], "k20c"), (["lud"], "k40c"), (["hotspot"], "k20c"), (["hotspot"], "k40c"), (["lud", "particlefilter"], "k20c"),
        (["lud", "matrixmul"], "k20c"), (["streamcluster", "hotspot"], "k40c"),
        (["streamcluster", "particlefilter", "lud", "hotspot"], "k40c")]
#: whose walk is drawn
FIGURES = {("streamcluster", "time"): 2, ("streamcluster", "energy"): 3,
           ("streamcluster+particlefilter+lud+hotspot", "time"): 4, ("streamcluster+particlefilter+lud+hotspot", "energy"): 4}


def kernel_tables(name):
    flops, transferred, registers, best, loss = MODELS[name]
    square = name in SQUARE
    threads, block = ("BLOCK * BLOCK", '["BLOCK", "BLOCK"]') if square else ("BLOCK", '["BLOCK"]')
    return f"""
[kernels.{name}]
function = "{name}"
parameters = {{ BLOCK = {POWERS[name]} }}
launch = {{ global = {'["4096", "4096"]' if square else '["16777216"]'}, block = {block} }}
[simulation.{name}]
flops = {flops}
bytes = {transferred}
registers = {registers}
shared_bytes = "{'8 * BLOCK * BLOCK' if name in ('lud', 'matrixmul') else '0'}"
efficiency = "0.6 * max(0.1, 1 - {loss} * abs(log2({threads}) - {best.bit_length() - 1}))"
"""


def problem_of(kernels, objective):
    text = f'name = "{"+".join(kernels)}"\nobjective = "{objective}"\n'
    if objective == "energy":
        text += '[execution]\ncore_clock_mhz = "all"\n'
    text += "".join(kernel_tables(name) for name in kernels)
    if len(kernels) > 1:
        text += f"[workload]\nsteps = [{{ concurrent = {json.dumps(kernels)} }}]\n"
    return text


def tuned(study, problem, board, strategy, *more):
    """The command's document, and the rows in the order in which they were run."""
    store = study.output / f"{problem.stem}-{board}-{strategy}.db"
    store.unlink(missing_ok=True)
    result = study.ergotune("tune", problem, "--device", f"sim:{board}", "--strategy", strategy, "--no-confirm", "-q", "--store", store,
                            *more)
    return result, study.rows(store)


def best(result, quantity):
    return result["best"]["quantities"][quantity]["value"]


def row(study, kernels, board):
    """One row of Table IV: both objectives, each on the whole space (every configuration) and on the reduced one."""
    name, found = "+".join(kernels), {}
    for objective in ("time", "energy"):
        problem = study.problem(f"{name}-{objective}", problem_of(kernels, objective))
        whole, _ = tuned(study, problem, board, "brute_force")
        result, walked = tuned(study, problem, board, "coordinate", "--occupancy", "0.8")
        found[objective] = result
        study.note(**{f"space__{name}__{board}__{objective}": whole["space"], f"reduced__{name}__{board}__{objective}": result["space"],
                      f"sets__{name}__{board}__{objective}": result["evaluated"],
                      f"above__{name}__{board}__{objective}": percent_above(best(result, objective), best(whole, objective))})
        if (name, objective) in FIGURES:
            study.figure(f"figure{FIGURES[name, objective]}-{board}-{objective}", f"{name} on {board}: sets as they were run",
                         "set", "s" if objective == "time" else "J",
                         {objective: ([(i + 1, r[objective]) for i, r in enumerate(walked)], "line")})
    performance, energy = found["time"], found["energy"]
    study.note(**{f"loss__{name}__{board}": percent_above(best(energy, "time"), best(performance, "time")),
                  f"saving__{name}__{board}": 100 * (1 - best(energy, "energy") / best(performance, "energy"))})
    blocks = {objective: ", ".join(str(v) for v in result["best"]["configuration"].values()) for objective, result in found.items()}
    return {"set": name, "board": board, "performance": blocks["time"], "energy": blocks["energy"], "provenance": "simulated"} | {
        f"{what} {objective}": int(study.numbers[f"{study.name}.{what}.{name}.{board}.{objective}"])
        for what in ("space", "reduced", "sets") for objective in ("time", "energy")}


def run(study):
    if study.device:
        study.say("guerreiro: on a board the same is: ergotune tune examples/several/four.toml --occupancy 0.8 --strategy coordinate")
        return
    study.go_through([("Table IV, Figures 2 to 4", lambda study: study.table("table4", [row(study, *which) for which in ROWS]))])
