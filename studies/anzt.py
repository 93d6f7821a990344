"""Anzt, Haugen, Kurzak, Luszczek, Dongarra (2015): DGEMM on a K20X: the space, Figures 4, 5 and 9 and the quadrants, simulated."""

import json

from study import ROOT, percent_above

# Table II: dim_m, dim_n, blk_m, blk_n, blk_k, shapes of A and B; GFLOP/s and GFLOPs/W on the paper's board.
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


def problem(size=4096):
    """The published experiment: no pairs, textures, A and B read together; no kernel beside it."""
    text = (ROOT / "examples/dgemm_beast/dgemm.toml").read_text()
    start = text.index("[parameters]")
    text = text[start:]
    for line in ("simd = [0, 1]", 'read_a = ["texture", "no_texture"]', 'read_b = ["texture", "no_texture"]',
                 'read_ab = ["interleaved", "non_interleaved"]'):
        text = text.replace(line, "")
    text = text.replace("(1 + simd * (1 - TRANS_A))", "1").replace("(1 + simd * TRANS_A)", "1")
    text = text.replace("(1 + simd * (1 - TRANS_B))", "1").replace("(1 + simd * TRANS_B)", "1")
    begin, end = text.index("[kernel]"), text.index("[metrics]")
    text = text[:begin] + '[kernel]\nfunction = "dgemm"\n[kernel.source.opencl]\ntext = "kernel void dgemm() {}"\n' + (
        '[kernel.launch]\ngrid = ["(SIZE_M + blk_m - 1) // blk_m", "(SIZE_N + blk_n - 1) // blk_n"]\nblock = ["dim_m", "dim_n"]\n\n'
    ) + text[end:]
    constants = f"SIZE_M = {size}\nSIZE_N = {size}\nSIZE_K = {size}\nlimit = 1024\nelement_bytes = 8\n"
    return f'name = "dgemm_{size}"\nobjective = "energy"\n[constants]\n{constants}\n{text}\n{SIMULATION}'


def scaling(study, configurations):
    """Figure 4: speed and efficiency of three of Table II's kernels over the size of the matrices."""
    rows = []
    for size in (512, 1024, 2048, 4096, 8192):
        file = study.problem(f"dgemm_{size}", problem(size))
        for entry in configurations:
            chosen = json.dumps({name: int(entry[name]) for name in NAMES})
            found = study.ergotune("measure", file, "--device", "sim:k20x", "--config", chosen)
            rows.append({"size": size, **{name: int(entry[name]) for name in NAMES}, "gflops": found["metrics"]["gflops"],
                         "gflops_per_watt": found["metrics"]["gflops_per_watt"], "provenance": "simulated"})
    study.table("figure4", rows)
    curves = {}
    for entry in configurations:
        own = [r for r in rows if all(r[name] == entry[name] for name in NAMES)]
        label = " ".join(str(int(entry[name])) for name in NAMES[:5])
        curves[label] = ([(r["size"], r["gflops"]) for r in own], "line")
    study.figure("figure4", "DGEMM over the size (simulated)", "matrix size", "GFLOP/s", curves)
    first = [r["gflops"] for r in rows if all(r[name] == configurations[0][name] for name in NAMES)]
    study.note(size_512_of_4096=100 * first[0] / first[3])


def run(study):
    store, rows = study.everything(study.problem("dgemm", problem()), "k20x")
    study.note(configurations=len(rows))
    by_shape = {tuple(int(row[name]) for name in NAMES): row for row in rows}
    found = [by_shape[entry[:9]] for entry in TABLE_TWO if entry[:9] in by_shape]
    study.note(table2_in_space=len(found))

    analysis = study.ergotune("analyse", store)
    fastest, greenest = (analysis["quadrants"][which] for which in ("fastest", "most_efficient"))
    faster = sum(row["time"] < greenest["time"] for row in rows)
    greener = sum(row["energy"] < fastest["energy"] for row in rows)
    study.note(faster_than_greenest=faster, greener_than_fastest=greener,
               energy_saved=-percent_above(greenest["energy"], fastest["energy"]),
               speed_lost=100 * (1 - greenest["speed"] / fastest["speed"]), best_gflops=fastest["speed"],
               spread_at_equal_speed=analysis["spread"]["energy_at_equal_speed"])
    speed = lambda row: 2 * 4096**3 / row["time"] / 1e9
    study.note(mean_gflops=sum(map(speed, rows)) / len(rows))
    study.table("table2", [dict(zip(NAMES, entry[:9])) | {
        "paper_gflops": entry[9], "paper_gflops_per_watt": entry[10],
        "simulated_gflops": speed(by_shape[entry[:9]]), "simulated_gflops_per_watt": 2 * 4096**3 / by_shape[entry[:9]]["energy"] / 1e9}
        for entry in TABLE_TWO if entry[:9] in by_shape])
    study.table("figure9", [{name: c[name] for name in ("name", "speed", "efficiency", "n")} | {"provenance": "simulated"}
                            for c in analysis["correlations"]])
    scaling(study, found[:3])
    study.figure("figure5", "DGEMM on a K20X (simulated)", "GFLOP/s", "GFLOP/s per W", {
        "configurations": ([(speed(r), 2 * 4096**3 / r["energy"] / 1e9) for r in rows], "points"),
        "Table II": ([(speed(r), 2 * 4096**3 / r["energy"] / 1e9) for r in found], "points")})
