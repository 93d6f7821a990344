"""Anzt, Haugen, Kurzak, Luszczek, Dongarra (2015): DGEMM on a K20X: the space, Figures 3 to 9, Table II and the quadrants, simulated.
On a real GPU: Table II, size scaling, repeatability, a random part of the cloud, and counters where they may be read."""

import csv
import gzip
import json

from study import ROOT, Mistake, correlation, mean, percent_above, spread_percent
from vendor import dgemm_figures

MEASURES = True  # a part of it runs on real GPUs

# Table II: dim_m, dim_n, blk_m, blk_n, blk_k, shapes of A and B; GFLOP/s and GFLOPs/W on the paper's GPU.
TABLE_TWO = [
    (16, 16, 64, 96, 16, 64, 4, 16, 16, 904, 4.4867),
    (32, 16, 128, 128, 16, 32, 16, 8, 64, 782, 4.5849),
    (16, 16, 128, 128, 8, 64, 4, 8, 32, 703, 4.5754),
    (16, 16, 128, 128, 8, 32, 8, 4, 64, 656, 4.4415),
    (16, 16, 64, 256, 8, 32, 8, 4, 64, 516, 3.8891),
    (16, 16, 128, 128, 2, 128, 2, 2, 128, 389, 3.2539),
    (16, 16, 64, 128, 4, 64, 4, 2, 128, 345, 2.8617),
    (48, 16, 48, 96, 16, 48, 16, 8, 96, 308, 2.3473),
    (64, 16, 64, 64, 16, 64, 16, 16, 64, 311, 2.3488),
    (16, 48, 96, 48, 16, 48, 16, 16, 48, 318, 2.3590),
    (64, 16, 64, 64, 48, 64, 16, 16, 64, 355, 2.4323),
    (32, 16, 64, 64, 24, 64, 8, 8, 64, 633, 3.2919),
    (16, 16, 64, 80, 16, 32, 8, 16, 16, 843, 4.0591),
    (16, 16, 80, 80, 16, 16, 16, 16, 16, 901, 4.4317),
]
NAMES = ["dim_m", "dim_n", "blk_m", "blk_n", "blk_k", "blk_m_a", "blk_n_a", "blk_m_b", "blk_n_b"]

# What the kernel costs, assumed: every stripe is read once per tile; each multiply-add needs its share of reads from shared
# memory, and each stripe two barriers.
SIMULATION = """
[simulation]
flops = "2 * SIZE_M * SIZE_N * SIZE_K"
bytes = "8 * SIZE_M * SIZE_N * SIZE_K * (1 / blk_m + 1 / blk_n)"
registers = "min(255, 24 + 2 * blk_m * blk_n // (dim_m * dim_n))"
shared_bytes = "8 * blk_k * (blk_m + blk_n)"
efficiency = "0.32 / (1 + 0.5 * (dim_m / blk_m + dim_n / blk_n)) / (1 + 1.2 / blk_k)"
"""


#: two restrictions of the example that no printed filter has and section 2.2 implies: all threads of the block take part in reading
OURS = "# All threads of the block take part"


def problem(size=4096, printed=False, pairs=False, one_register=False, limit=1024):
    """The published experiment: textures, A and B read together; no kernel beside it. With the printed filters alone, with the
    choice between plain numbers and pairs (simd), with one register for an element, as printed, where a double takes two, or with
    another limit of tiles."""
    text = (ROOT / "examples/dgemm_beast/dgemm.toml").read_text()
    start = text.index("[parameters]")
    text = text[start:]
    if one_register:
        text = text.replace(" * element_bytes // 4", "")
    if printed:
        text = text[:text.index(OURS)]
    for line in (*(() if pairs else ("simd = [0, 1]",)), 'read_a = ["texture", "no_texture"]', 'read_b = ["texture", "no_texture"]',
                 'read_ab = ["interleaved", "non_interleaved"]'):
        text = text.replace(line, "")
    for matrix in ("A", "B"):
        text = text.replace(f"(1 + simd * (1 - TRANS_{matrix}))", "(1 + simd)" if pairs else "1").replace(f"(1 + simd * TRANS_{matrix})", "1")
    begin, end = text.index("[kernel]"), text.index("[metrics]")
    text = text[:begin] + '[kernel]\nfunction = "dgemm"\n[kernel.source.opencl]\ntext = "kernel void dgemm() {}"\n' + (
        '[kernel.launch]\ngrid = ["(SIZE_M + blk_m - 1) // blk_m", "(SIZE_N + blk_n - 1) // blk_n"]\nblock = ["dim_m", "dim_n"]\n\n'
    ) + text[end:]
    constants = f"SIZE_M = {size}\nSIZE_N = {size}\nSIZE_K = {size}\nlimit = {limit}\nelement_bytes = 8\n"
    return f'name = "dgemm_{size}"\nobjective = "energy"\n[constants]\n{constants}\n{text}\n{SIMULATION}'


SIZES = (512, 1024, 2048, 4096, 8192)
REPEATED = 10  # launches of the same kernel, as in the paper
CLOUD = 60     # random configurations on a real GPU, beside Table II's
# What the paper names of its counters, as ergotune does.
COUNTERS = ["occupancy", "ipc", "issued_ipc", "inst_executed", "inst_issued", "ldst_executed", "shared_load_transactions", "shared_load_throughput",
            "l2_tex_read_hit_rate", "stall_inst_fetch", "dram_read_throughput", "dram_utilization", "l2_read_throughput", "tex_throughput"]
MOVING = ["l2_tex_read_hit_rate", "shared_load_throughput", "stall_inst_fetch", "dram_read_throughput", "dram_utilization"]
#: 124 random configurations on an H100, measured by us
COUNTED = ROOT / "docs/measurements/counters-dgemm-h100.json.gz"
DGEMM = ROOT / "examples/dgemm_beast/dgemm.toml"
WORK = 2 * 4096**3 / 1e9


def speed(row):
    return WORK / row["time"]


def efficiency(row):
    return WORK / row["energy"]


def iterators(study):
    """Figure 3: what the space is made of, and what each filter leaves of it."""
    told = study.ergotune("space", study.problem("dgemm", problem()), "--profile", "k20x", "--explain")
    study.table("figure3", [{"iterator": p["name"], "values": len(p["values"]), "least": min(p["values"]), "most": max(p["values"]),
                             "provenance": "counted"} for p in told["parameters"]])
    study.table("figure3-filters", [{name: rule[name] for name in ("label", "expression", "class", "removed_alone", "removed_only_by_it")} |
                                    {"provenance": "counted"} for rule in told["restrictions"]])
    study.note(after_filters=told["valid"], filters=len(told["restrictions"]))
    for name, options in (("printed", {"printed": True, "one_register": True}), ("printed_with_pairs", {"printed": True, "pairs": True, "one_register": True}),
                          ("one_register", {"one_register": True}), ("one_register_with_pairs", {"pairs": True, "one_register": True}),
                          ("unbounded", {"printed": True, "one_register": True, "limit": 4096}),
                          ("unbounded_with_pairs", {"printed": True, "pairs": True, "one_register": True, "limit": 4096}),
                          ("with_pairs", {"pairs": True})):
        study.note(**{f"after_filters_{name}": study.ergotune("space", study.problem(f"dgemm_{name}", problem(**options)), "--profile", "k20x")["valid"]})


def whole_space(study):
    """Figures 5 to 9, Table II and the quadrants: everything on a simulated K20X."""
    store, rows = study.everything(study.problem("dgemm", problem()), "k20x")
    by_shape = {tuple(int(row[name]) for name in NAMES): row for row in rows}
    found = [by_shape[entry[:9]] for entry in TABLE_TWO if entry[:9] in by_shape]
    study.note(configurations=len(rows), table2_in_space=len(found))
    analysis = study.ergotune("analyse", store)
    fastest, greenest = (analysis["quadrants"][which] for which in ("fastest", "most_efficient"))
    study.note(faster_than_greenest=sum(row["time"] < greenest["time"] for row in rows),
               greener_than_fastest=sum(row["energy"] < fastest["energy"] for row in rows),
               upper_right=sum(row["time"] < greenest["time"] and row["energy"] < fastest["energy"] for row in rows),
               faster_share=100 * mean([row["time"] < greenest["time"] for row in rows]),
               greener_share=100 * mean([row["energy"] < fastest["energy"] for row in rows]),
               energy_saved=-percent_above(greenest["energy"], fastest["energy"]),
               speed_lost=100 * (1 - greenest["speed"] / fastest["speed"]), best_gflops=fastest["speed"],
               spread_at_equal_speed=analysis["spread"]["energy_at_equal_speed"],
               spread_at_equal_efficiency=analysis["spread"]["time_at_equal_efficiency"], mean_gflops=mean(list(map(speed, rows))),
               least_gflops=min(map(speed, rows)), least_gflops_per_watt=min(map(efficiency, rows)), middle_share=100 * mean([400 <= speed(r) <= 700 for r in rows]),
               mean_gflops_per_watt=mean(list(map(efficiency, rows))), best_gflops_per_watt=greenest["efficiency"])
    study.table("table2", [dict(zip(NAMES, entry[:9])) | {
        "paper_gflops": entry[9], "paper_gflops_per_watt": entry[10], "gflops": speed(by_shape[entry[:9]]),
        "gflops_per_watt": efficiency(by_shape[entry[:9]])} for entry in TABLE_TWO if entry[:9] in by_shape])
    table_correlation(study, [entry for entry in TABLE_TWO if entry[:9] in by_shape], list(map(speed, found)), list(map(efficiency, found)))
    cloud(study, rows, found)
    correlations(study, coefficients(analysis))
    for row in rows:  # what the model says that nvprof says in the paper
        tiles = 1 / row["blk_m"] + 1 / row["blk_n"]
        row["dram_read_throughput"] = 8 * 4096**3 * tiles / row["time"]
        row["instructions_per_second"] = (WORK * 1e9 / 2 + 4096**3 * (row["dim_m"] / row["blk_m"] + row["dim_n"] / row["blk_n"])) / row["time"]
    by_metric(study, rows, ["occupancy", "instructions_per_second", "dram_read_throughput"])
    occupancy_levels(study, rows)
    scaling(study, found[:3])


def table_correlation(study, papers, speeds, efficiencies):
    study.note(table2_speed_correlation=correlation([entry[9] for entry in papers], speeds),
               table2_efficiency_correlation=correlation([entry[10] for entry in papers], efficiencies))


def cloud(study, rows, marked):
    """Figure 5: efficiency over speed, and Table II's kernels in it."""
    study.figure("figure5", "DGEMM: efficiency over speed", "GFLOP/s", "GFLOP/s per W", {
        "configurations": ([(speed(r), efficiency(r)) for r in rows], "points"),
        "Table II": ([(speed(r), efficiency(r)) for r in marked], "points")})


def coefficients(analysis):
    """The correlations of an analysis without their intervals."""
    return [{name: i[name] for name in ("name", "kind", "n")} |
            {what: i[what]["r"] if what in i else None for what in ("speed", "efficiency", "product")} for i in analysis["influences"]]


def intervals(study, analysis):
    """The correlations of the paper's counters with their 95 % intervals, and of which ergotune's test says that they move."""
    told = {i["name"]: i for i in analysis["influences"] if i["name"] in COUNTERS and "speed" in i}
    for name, one in told.items():
        for what in ("speed", "efficiency", "product", "shift"):
            if what in one:
                value = one[what]["r"]
                study.note(**{f"correlation_{what}__{name}": value, f"correlation_{what}__{name}__low": one[what]["low"],
                              f"correlation_{what}__{name}__high": one[what]["high"]})
    study.note(counters_that_move=sum(told[name]["moves"] for name in MOVING if name in told))


def correlations(study, told):
    """Figures 6 to 8: what goes with speed, with efficiency and with their product."""
    told = [c for c in told if c["name"] not in ("gflops", "gflops_per_watt", "time", "energy", "power")]
    study.table("figure6", [{name: c[name] for name in ("name", "kind", "speed", "efficiency", "product", "n")} for c in told])
    for figure, what in ((6, "speed"), (7, "efficiency"), (8, "product")):
        of = sorted((c for c in told if c[what] is not None), key=lambda c: c[what])
        study.bars(f"figure{figure}", f"DGEMM: correlation with {what}", "coefficient", [c["name"] for c in of], {what: [c[what] for c in of]})


def by_metric(study, rows, metrics):
    """Figure 9: speed and efficiency of what lies above and below the mean of each metric."""
    for metric in metrics:
        own = [r for r in rows if isinstance(r.get(metric), float)]
        if len(own) < 2:
            continue
        middle = mean([r[metric] for r in own])
        parts = {f"above the mean {metric}": [r for r in own if r[metric] > middle], "below": [r for r in own if r[metric] <= middle]}
        parts = {label: part for label, part in parts.items() if part}
        for column, (x_name, x, y_name, y) in enumerate((
                (metric, lambda r: r[metric], "GFLOP/s", speed), (metric, lambda r: r[metric], "GFLOP/s per W", efficiency),
                ("GFLOP/s", speed, "GFLOP/s per W", efficiency)), 1):
            study.figure(f"figure9-{metric}-{column}", f"DGEMM: {metric}", x_name, y_name,
                         {label: ([(x(r), y(r)) for r in part], "points") for label, part in parts.items()})


def occupancy_levels(study, rows):
    """Mean speed and efficiency at each occupancy: Figure 9's first row."""
    levels = sorted({round(r["occupancy"], 4) for r in rows})
    table = [{"occupancy": level, "configurations": len(own), "mean_gflops": mean([speed(r) for r in own]),
              "mean_gflops_per_watt": mean([efficiency(r) for r in own]), "best_gflops": max(speed(r) for r in own)}
             for level in levels for own in [[r for r in rows if round(r["occupancy"], 4) == level]]]
    study.table("occupancy", table)
    study.note(occupancy_levels=len(levels), occupancy_least=100 * levels[0], occupancy_most=100 * levels[-1],
               **{f"best_occupancy_for_{what}": 100 * max(table, key=lambda r: r[column])["occupancy"]
                  for what, column in (("speed", "mean_gflops"), ("efficiency", "mean_gflops_per_watt"))},
               **correlations_of_levels([(r["occupancy"], r["mean_gflops"], r["mean_gflops_per_watt"]) for r in table]))


def correlations_of_levels(levels):
    """Correlation of occupancy with mean speed and mean efficiency, over the levels that the paper has: up to a half."""
    occupancy, speeds, efficiencies = zip(*(level for level in levels if level[0] <= 0.5))
    return {"level_speed_correlation": correlation(occupancy, speeds), "level_efficiency_correlation": correlation(occupancy, efficiencies)}


def scaling(study, configurations):
    """Figure 4: speed and efficiency of three of Table II's kernels over the size of the matrices."""
    rows = []
    for size in SIZES:
        file = study.problem(f"dgemm_{size}", sized(size) if study.device else problem(size))
        for entry in configurations:
            shape = {name: int(entry[name]) for name in NAMES}
            if study.device:
                found = study.measure(file, shape, "--no-verify")
            else:
                found = study.ergotune("measure", file, "--device", "sim:k20x", "--config", json.dumps(shape))
            if found:
                rows.append({"size": size, **shape, "gflops": found["metrics"]["gflops"],
                             "gflops_per_watt": found["metrics"]["gflops_per_watt"]})
    study.table("figure4", rows)
    for name, what, unit in (("figure4-speed", "gflops", "GFLOP/s"), ("figure4-efficiency", "gflops_per_watt", "GFLOP/s per W")):
        study.figure(name, f"DGEMM over the size: {what}", "matrix size", unit, {
            " ".join(str(int(entry[n])) for n in NAMES[:5]): ([(r["size"], r[what]) for r in rows if all(r[n] == entry[n] for n in NAMES)], "line")
            for entry in configurations})
    of_largest(study, {r["size"]: r for r in rows if all(r[name] == configurations[0][name] for name in NAMES)})


def of_largest(study, first):
    """Speed and efficiency of one kernel at each size, in percent of those at 4096."""
    if 4096 in first:
        study.note(**{f"size_{size}_of_4096": 100 * float(first[size]["gflops"]) / float(first[4096]["gflops"]) for size in first},
                   **{f"size_{size}_of_4096_efficiency": 100 * float(first[size]["gflops_per_watt"]) / float(first[4096]["gflops_per_watt"])
                      for size in first})


def sized(size):
    """The example at another size, to be run from the study's folder."""
    folder = DGEMM.parent
    text = DGEMM.read_text().replace('"dgemm.cl"', f'"{folder}/dgemm.cl"').replace('"dgemm_reference.cl"', f'"{folder}/dgemm_reference.cl"')
    text = text.replace('"../common"', f'"{folder.parent}/common"')
    for name in ("SIZE_M", "SIZE_N", "SIZE_K"):
        text = text.replace(f"{name} = 4096", f"{name} = {size}")
    return text


def table_on_gpu(study):
    """Table II's kernels on a GPU: speed, efficiency, the order of both."""
    rows = []
    for entry in TABLE_TWO:
        found = study.measure(DGEMM, dict(zip(NAMES, entry[:9])))
        if found:
            rows.append(dict(zip(NAMES, entry[:9])) | {"paper_gflops": entry[9], "paper_gflops_per_watt": entry[10],
                                                       "gflops": found["metrics"]["gflops"], "gflops_per_watt": found["metrics"]["gflops_per_watt"]})
            label = "_".join(map(str, entry[:9]))
            study.note(**{f"table2_gflops__{label}": rows[-1]["gflops"], f"table2_gflops_per_watt__{label}": rows[-1]["gflops_per_watt"]})
    study.table("table2", rows)
    fastest, greenest = max(rows, key=lambda r: r["gflops"]), max(rows, key=lambda r: r["gflops_per_watt"])
    study.note(table2_worked=len(rows), table2_fastest=fastest["gflops"], table2_greenest=greenest["gflops_per_watt"],
               table2_saved=100 * (1 - fastest["gflops_per_watt"] / greenest["gflops_per_watt"]),
               table2_lost=100 * (1 - greenest["gflops"] / fastest["gflops"]))


def repeatability(study):
    """Ten launches of the tuned kernel, each a process that warms up and measures for itself; then 30 s of it at once."""
    shape = dict(zip(NAMES, TABLE_TWO[1][:9]))
    found = [m for m in (study.measure(DGEMM, shape, "--no-verify") for _ in range(REPEATED)) if m]
    rows = [{"launch": i, "gflops": m["metrics"]["gflops"], "gflops_per_watt": m["metrics"]["gflops_per_watt"]} for i, m in enumerate(found)]
    study.table("repeatability", rows)
    study.note(repeated=len(rows), repeated_speed_spread=spread_percent([r["gflops"] for r in rows]),
               repeated_energy_spread=spread_percent([1 / r["gflops_per_watt"] for r in rows]))
    long = study.measure(DGEMM, shape, "--no-verify", "--reference", "30s")
    if long:
        study.note(half_minute_energy=percent_above(long["quantities"]["energy"]["value"], WORK / mean([r["gflops_per_watt"] for r in rows])))


def table_beside_vendor(study):
    """Table II between two runs of the vendor's library, which show, as in the paper, whether the GPU has become slower."""
    before = dgemm_figures()
    table_on_gpu(study)
    after = dgemm_figures()
    if after:
        study.note(vendor_gflops=WORK / after["time"], vendor_slowdown=percent_above(after["time"], before["time"]))
        if after["energy"]:
            study.note(vendor_gflops_per_watt=WORK / after["energy"])


def cloud_on_gpu(study):
    """Figures 5 to 9 on a GPU: a random part of the space, for energy, with counters where they may be read."""
    store = study.output / "cloud.db"
    options = (DGEMM, "--device", study.device, "--objective", "energy", "--strategy", "random", "--budget", CLOUD, "--no-confirm", "-q",
               "--store", store)
    try:
        study.ergotune("tune", *options, "--observe", "counters")
    except (RuntimeError, Mistake) as error:  # who may count is the driver's decision
        study.say(f"without counters: {str(error)[-300:]}")
        study.ergotune("tune", *options)
    cloud_of(study, store)


def cloud_of(study, source):
    """Figures 5 to 9 and the quadrants of measured configurations: of a store, or of the recording in the repository."""
    analysis = study.ergotune("analyse", source)
    if source == COUNTED:
        rows = [row | {"time": row["time"] / 1000, "energy": row["nvml_energy"]} for row in
                json.loads(gzip.decompress(source.read_bytes()))["cache"].values() if isinstance(row["time"], float)]
    else:
        rows = study.rows(source)
    cloud(study, rows, [])
    correlations(study, coefficients(analysis))
    by_metric(study, rows, ["occupancy", "ipc", "dram_read_throughput", "l2_read_throughput", "tex_throughput"])
    intervals(study, analysis)
    quadrants, levels = analysis["quadrants"], analysis["occupancy_levels"]
    study.note(cloud=len(rows), cloud_faster_than_greenest=quadrants["beat_most_efficient_in_speed"],
               cloud_greener_than_fastest=quadrants["beat_fastest_in_energy"],
               cloud_faster_share=100 * quadrants["beat_most_efficient_in_speed_share"],
               cloud_greener_share=100 * quadrants["beat_fastest_in_energy_share"], cloud_energy_saved=100 * quadrants["energy_saved"],
               cloud_speed_lost=100 * quadrants["speed_lost"], cloud_best_gflops=quadrants["fastest"]["speed"],
               cloud_mean_gflops=mean(list(map(speed, rows))), cloud_best_gflops_per_watt=quadrants["most_efficient"]["efficiency"],
               cloud_mean_gflops_per_watt=mean(list(map(efficiency, rows))), cloud_spread_at_equal_speed=analysis["spread"]["energy_at_equal_speed"],
               cloud_spread_at_equal_efficiency=analysis["spread"]["time_at_equal_efficiency"],
               occupancy_levels=len(levels), occupancy_least=100 * levels[0]["occupancy"], occupancy_most=100 * levels[-1]["occupancy"],
               **{f"best_occupancy_for_{what}": 100 * max(levels, key=lambda level: level[what])["occupancy"] for what in ("speed", "efficiency")},
               **correlations_of_levels([(level["occupancy"], level["speed"], level["efficiency"]) for level in levels]))
    highest = max(map(speed, rows))
    study.note(cloud_least_speed_share=100 * min(map(speed, rows)) / highest,
               cloud_least_efficiency_share=100 * min(map(efficiency, rows)) / max(map(efficiency, rows)),
               cloud_middle_share=100 * mean([400 / 904 <= speed(r) / highest <= 700 / 904 for r in rows]))  # most, of 904 GFLOP/s
    # the paper: all kernels above 820 of 904 GFLOP/s read DRAM, and all above 800 L2, more than the mean kernel does
    for counter, limit in (("dram_read_throughput", 820 / 904), ("l2_read_throughput", 800 / 904), ("tex_throughput", 800 / 904)):
        read = [row for row in rows if isinstance(row.get(counter), float)]
        fastest = [row for row in read if speed(row) > limit * max(map(speed, read))]
        if fastest:
            middle = mean([row[counter] for row in read])
            study.note(**{f"fastest__{counter}": len(fastest), f"fastest_above_mean__{counter}": sum(row[counter] > middle for row in fastest)})


def counters_of_h100(study):
    """Figures 5 to 9 of the configurations that were measured on an H100, from the repository."""
    if not COUNTED.is_file():
        raise RuntimeError(f"anzt needs {COUNTED}, which is not there: docs/measurements/counters-2026-11-22.md says how it was made")
    kept = study.of_measurement("h100")
    cloud_of(kept, COUNTED)
    measured = ROOT / "docs/measurements/h100-2026-11-22-studies/anzt"
    with open(measured / "table2.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    table_correlation(kept, TABLE_TWO, *([float(row[what]) for row in rows] for what in ("gflops", "gflops_per_watt")))
    fastest = max(float(row["gflops"]) for row in rows)
    kept.note(table2_fastest_below_cloud=100 * (1 - fastest / kept.numbers[f"{kept.name}.{kept.part}cloud_best_gflops"]))
    with open(measured / "figure4.csv", newline="") as file:
        shape = [str(value) for value in TABLE_TWO[0][:9]]
        of_largest(kept, {int(row["size"]): row for row in csv.DictReader(file) if [row[name] for name in NAMES] == shape})


def run(study):
    if study.store:
        study.go_through([("Figures 5 to 9 of a store", lambda s: cloud_of(s, s.store))])
    elif study.device:
        shapes = [dict(zip(NAMES, entry[:9])) for entry in TABLE_TWO[:3]]
        study.go_through([("Table II and the vendor's library", table_beside_vendor), ("size scaling (Figure 4)", lambda s: scaling(s, shapes)),
                          ("ten launches and half a minute", repeatability), ("a part of the cloud (Figures 5 to 9)", cloud_on_gpu)])
    else:
        study.go_through([("Figure 3, the space", iterators), ("Figures 4 to 9, Table II", whole_space),
                          ("Figures 4 to 9 as measured on an H100", counters_of_h100)])
