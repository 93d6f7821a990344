"""Guerreiro, Ilic, Roma, Tomas (PDP 2015): tuning several concurrent kernels. Figures 1 to 4 and Table IV on simulated GPUs: how
far occupancy reduces a space, how many sets `coordinate` runs, and where it ends.

The kernels are models: flops, bytes, registers and shared memory of one launch, and an efficiency over the block size that is
assumed such that each kernel alone is best where the paper found it; spaces, GPUs and clocks are the paper's.
"""

import json
import re
import tomllib

from study import ROOT, correlation, mean, percent_above

POWERS = {"streamcluster": [2**i for i in range(1, 11)], "particlefilter": [2**i for i in range(1, 10)],
          "lud": [2**i for i in range(1, 6)], "hotspot": [2**i for i in range(1, 6)], "matrixmul": [2**i for i in range(1, 6)]}
SQUARE = {"lud", "hotspot", "matrixmul"}
#: flops, bytes, registers, best block (threads) and what a factor of two from it costs (share), as assumed
MODELS = {"streamcluster": (2.0e10, 3.0e9, 24, 128, 0.02), "particlefilter": (4.0e10, 0.5e9, 22, 128, 0.02),
          "lud": (4.6e10, 2.0e9, 24, 256, 0.08), "hotspot": (1.0e10, 2.5e9, 30, 256, 0.05),
          "matrixmul": (1.4e11, 4.0e9, 28, 1024, 0.10)}
#: where the paper's best block for time is another on its older GPUs, which have no sensor of power
ELSEWHERE = {("streamcluster", "gtx680"): 1024, ("streamcluster", "gtx580"): 1024, ("particlefilter", "gtx680"): 512,
             ("particlefilter", "gtx580"): 256}
#: Table IV: kernels, GPU; blocks for performance; blocks and clock for energy; loss of performance, saving of energy (percent)
ROWS = [(["streamcluster"], "k20c", [128], [128], 705, 2, 2), (["streamcluster"], "k40c", [128], [128], 875, 0, 0),
        (["particlefilter"], "k20c", [128], [512], 758, 0.5, 1), (["particlefilter"], "k40c", [128], [128], 810, 8, 1),
        (["lud"], "k20c", [16], [32], 705, 19, 13), (["lud"], "k40c", [16], [32], 810, 18, 12),
        (["hotspot"], "k20c", [16], [16], 758, 0, 0), (["hotspot"], "k40c", [16], [16], 875, 0, 0),
        (["lud", "particlefilter"], "k20c", [16, 256], [32, 512], 758, 13, 5),
        (["lud", "matrixmul"], "k20c", [16, 32], [16, 32], 705, 6, 5),
        (["streamcluster", "hotspot"], "k40c", [128, 16], [512, 16], 810, 0.5, 0.5),
        (["streamcluster", "particlefilter", "lud", "hotspot"], "k40c", [128, 128, 16, 32], [1024, 512, 32, 32], 745, 7, 4)]
#: rows of performance alone
OLDER = [(["streamcluster"], "gtx680"), (["streamcluster"], "gtx580"), (["particlefilter"], "gtx680"), (["particlefilter"], "gtx580")]
#: whose walk is drawn
FIGURES = {("streamcluster", "time"): 2, ("streamcluster", "energy"): 3,
           ("streamcluster+particlefilter+lud+hotspot", "time"): 4, ("streamcluster+particlefilter+lud+hotspot", "energy"): 4}


def kernel_tables(name, gpu):
    flops, transferred, registers, best, loss = MODELS[name]
    best = ELSEWHERE.get((name, gpu), best)
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


def highest_clock(gpu):
    """Where performance is tuned, as in the paper: a simulated GPU that is told no clock runs at its default one."""
    return max(tomllib.loads((ROOT / f"profiles/{gpu}.toml").read_text())["clock"]["core_mhz"])


def problem_of(kernels, objective, gpu):
    clocks = '"all"' if objective == "energy" else f"[{highest_clock(gpu)}]"
    text = f'name = "{"+".join(kernels)}"\nobjective = "{objective}"\n[execution]\ncore_clock_mhz = {clocks}\n'
    text += "".join(kernel_tables(name, gpu) for name in kernels)
    if len(kernels) > 1:
        text += f"[workload]\nsteps = [{{ concurrent = {json.dumps(kernels)} }}]\n"
    return text


def tuned(study, problem, gpu, strategy, *more):
    """The command's document, and the rows in the order in which they were run."""
    store = study.output / f"{problem.stem}-{gpu}-{strategy}.db"
    store.unlink(missing_ok=True)
    result = study.ergotune("tune", problem, "--device", f"sim:{gpu}", "--strategy", strategy, "--no-confirm", "-q", "--store", store,
                            *more)
    return result, study.rows(store)


def best(result, quantity):
    return result["best"]["quantities"][quantity]["value"]


def reduced(study, name, gpu, objective, problem, device=None):
    """The whole space and the reduced one, tuned; their numbers."""
    whole, everything = tuned(study, problem, device or gpu, "brute_force")
    result, walked = tuned(study, problem, device or gpu, "coordinate", "--occupancy", "0.8")
    study.note(**{f"space__{name}__{gpu}__{objective}": whole["space"], f"reduced__{name}__{gpu}__{objective}": result["space"],
                  f"sets__{name}__{gpu}__{objective}": result["evaluated"],
                  f"above__{name}__{gpu}__{objective}": percent_above(best(result, objective), best(whole, objective)),
                  f"fewer__{name}__{gpu}__{objective}": whole["space"] / result["evaluated"]})
    for kernel, block in blocks(result):
        study.note(**{f"block__{name}__{gpu}__{objective}__{kernel}": block})
    return result, everything, walked


def blocks(result):
    """Kernel and block of an answer, in the order of the kernels."""
    configuration = result["best"]["configuration"]
    return [(re.sub(r"\W?BLOCK$", "", name) or "alone", value) for name, value in configuration.items() if name.endswith("BLOCK")]


def row(study, kernels, gpu):
    """One row of Table IV: both objectives, each on the whole space (every configuration) and on the reduced one."""
    name, found = "+".join(kernels), {}
    for objective in ("time", "energy"):
        problem = study.problem(f"{name}-{gpu}-{objective}", problem_of(kernels, objective, gpu))
        found[objective], everything, walked = reduced(study, name, gpu, objective, problem)
        if (name, objective) in FIGURES:
            study.figure(f"figure{FIGURES[name, objective]}-{gpu}-{objective}", f"{name} on {gpu}: sets as they were run",
                         "set", "s" if objective == "time" else "J",
                         {objective: ([(i + 1, r[objective]) for i, r in enumerate(walked)], "line")})
    if len(kernels) == 1:
        figure_one(study, name, gpu, everything)
    performance, energy = found["time"], found["energy"]
    study.note(**{f"loss__{name}__{gpu}": percent_above(best(energy, "time"), best(performance, "time")),
                  f"saving__{name}__{gpu}": 100 * (1 - best(energy, "energy") / best(performance, "energy")),
                  f"clock__{name}__{gpu}": energy["best"]["configuration"]["core_clock_mhz"]})
    return {"set": name, "gpu": gpu, **{f"blocks {objective}": ", ".join(str(block) for _, block in blocks(result)) for objective, result in found.items()},
            "clock": energy["best"]["configuration"]["core_clock_mhz"], "provenance": "simulated"} | {
        f"{what} {objective}": int(study.numbers[f"{study.name}.{what}.{name}.{gpu}.{objective}"])
        for what in ("space", "reduced", "sets") for objective in ("time", "energy")}


def figure_one(study, name, gpu, everything):
    """Figure 1: the range of time and of energy of each block over all clocks, and the best block for either."""
    block = next(column for column in everything[0] if column.endswith("BLOCK"))
    threads = {r[block]: int(r[block] ** (2 if name in SQUARE else 1)) for r in everything}
    for what, unit in (("time", "s"), ("energy", "J")):
        ends = [(threads[size], [r[what] for r in everything if r[block] == size]) for size in sorted(threads)]
        study.figure(f"figure1-{name}-{gpu}-{what}", f"{name} on {gpu}: range of {what} over the clocks", "threads of a block", unit,
                     {"least": ([(size, min(of)) for size, of in ends], "line"), "most": ([(size, max(of)) for size, of in ends], "line")})
        study.note(**{f"best_threads__{what}__{name}__{gpu}": threads[min(everything, key=lambda r: r[what])[block]]})


def older(study):
    """Table IV's rows of the GTX 680 and 580: performance alone, at one clock."""
    for kernels, gpu in OLDER:
        problem = study.problem(f"{kernels[0]}-{gpu}-time", problem_of(kernels, "time", gpu))
        reduced(study, kernels[0], gpu, "time", problem)


def together(study):
    """What all rows say: averages, the paper's answers met, and correlation with its savings and losses."""
    number = lambda what, kernels, gpu, *more: study.numbers[".".join([study.name, what, "+".join(kernels), gpu, *more])]
    answers = lambda objective, kernels, gpu: [value for key, value in study.numbers.items()
                                                 if key.startswith(f"{study.name}.block.{'+'.join(kernels)}.{gpu}.{objective}.")]
    savings = {gpu: [number("saving", k, b) for k, b, *_ in ROWS if b == gpu] for gpu in ("k20c", "k40c")}
    fewer = [value for name, value in study.numbers.items() if name.startswith(f"{study.name}.fewer.")]
    for objective, column in (("time", 2), ("energy", 3)):  # blocks that the paper's sets change from those of the kernel alone
        alone = {(entry[0][0], entry[1]): entry[column][0] for entry in ROWS if len(entry[0]) == 1}
        changes = [block == own != answers(objective, [kernel], entry[1])[0] for entry in ROWS if len(entry[0]) > 1
                   for kernel, block, own in zip(entry[0], entry[column], answers(objective, *entry[:2]))
                   if alone.get((kernel, entry[1]), block) != block]
        study.note(**{f"changes__{objective}": len(changes), f"changes_met__{objective}": sum(changes)})
    study.note(saving_mean__k20c=mean(savings["k20c"]), saving_mean__k40c=mean(savings["k40c"]), saving_most__k20c=max(savings["k20c"]),
               saving_most__k40c=max(savings["k40c"]), rows=len(ROWS),
               saving_correlation=correlation([number("saving", k, b) for k, b, *_ in ROWS], [saving for *_, saving in ROWS]),
               loss_correlation=correlation([number("loss", k, b) for k, b, *_ in ROWS], [loss for *_, loss, _ in ROWS]),
               clocks_met=sum(number("clock", k, b) == clock for k, b, _, _, clock, *_ in ROWS),
               energy_blocks_met=sum(answers("energy", k, b) == theirs for k, b, _, theirs, *_ in ROWS),
               # blocks of single kernels for performance are put in
               performance_blocks_met=sum(answers("time", k, b) == theirs for k, b, theirs, *_ in ROWS if len(k) > 1),
               energy_optimal=sum(number("above", k, b, "energy") < 0.05 for k, b, *_ in ROWS),
               energy_above_most=max(number("above", k, b, "energy") for k, b, *_ in ROWS),
               fewer_least=min(fewer), fewer_most=max(fewer), fewer_hundred=sum(f >= 100 for f in fewer), entries=len(fewer),
               sets_most=max(value for name, value in study.numbers.items() if name.startswith(f"{study.name}.sets.")))


def ridges(study):
    """How many of the paper's clocks come out if the assumed ridge lies elsewhere: what Table IV's clocks hang on."""
    rows = []
    for gpu, ridges_mhz in (("k20c", (614, 666, 705, 758)), ("k40c", (666, 745, 810, 875))):
        text = (ROOT / f"profiles/{gpu}.toml").read_text()
        for ridge in ridges_mhz:
            profile = study.output / f"{gpu}-{ridge}.toml"
            profile.write_text(re.sub(r"ridge_mhz = \d+", f"ridge_mhz = {ridge}", text))
            met, of = 0, [entry for entry in ROWS if entry[1] == gpu]
            for kernels, _, _, _, clock, *_ in of:
                problem = study.output / f"{'+'.join(kernels)}-{gpu}-energy.toml"
                result = study.ergotune("tune", problem, "--device", f"sim:{profile}", "--strategy", "coordinate", "--occupancy", "0.8",
                                        "--no-confirm", "-q", "--no-store")
                met += result["best"]["configuration"]["core_clock_mhz"] == clock
            rows.append({"gpu": gpu, "ridge_mhz": ridge, "clocks_of_the_paper": met, "rows": len(of)})
            study.note(**{f"clocks_met_with_ridge__{gpu}__{ridge}": met})
    study.table("ridges", rows)


def run(study):
    if study.device:
        study.say("guerreiro: on a GPU the same is: ergotune tune examples/several/four.toml --occupancy 0.8 --strategy coordinate")
        return
    study.go_through([("Table IV, Figures 1 to 4", lambda study: study.table("table4", [row(study, *which[:2]) for which in ROWS])),
                      ("Table IV, GTX 680 and 580", older), ("Table IV, all rows", together), ("what the clocks hang on", ridges)])
