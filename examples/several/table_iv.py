"""Table IV of Guerreiro et al. (PDP 2015) on simulated boards: how far occupancy reduces a space, and how many sets `coordinate`
runs. Everything it prints is simulated.

    python3 table_iv.py [--command ergotune]

The kernels are models: flops, bytes, registers and shared memory of one launch, and an efficiency over the block size that is
assumed such that each kernel alone is best where the paper found it; spaces, devices and clocks are the paper's.
"""
import argparse
import json
import subprocess
import tempfile

POWERS = {"streamcluster": [2**i for i in range(1, 11)], "particlefilter": [2**i for i in range(1, 10)],
          "lud": [2**i for i in range(1, 6)], "hotspot": [2**i for i in range(1, 6)], "matrixmul": [2**i for i in range(1, 6)]}
SQUARE = {"lud", "hotspot", "matrixmul"}
#: flops, bytes, registers, best block (threads) and what a factor of two from it costs (share), as assumed
MODELS = {"streamcluster": (2.0e10, 3.0e9, 24, 128, 0.02), "particlefilter": (4.0e10, 0.5e9, 22, 128, 0.02),
          "lud": (4.6e10, 2.0e9, 24, 256, 0.08), "hotspot": (1.0e10, 2.5e9, 30, 256, 0.05),
          "matrixmul": (1.4e11, 4.0e9, 28, 1024, 0.10)}
#: kernels, device, block and iterations of the paper's performance and energy solutions
ROWS = [
    (["streamcluster"], "k20c", "4 of 10", "7 of 50"), (["streamcluster"], "k40c", "4 of 10", "7 of 40"),
    (["particlefilter"], "k20c", "3 of 9", "3 of 45"), (["particlefilter"], "k40c", "3 of 9", "7 of 36"),
    (["lud"], "k20c", "2 of 5", "4 of 25"), (["lud"], "k40c", "2 of 5", "4 of 20"),
    (["hotspot"], "k20c", "1 of 5", "2 of 25"), (["hotspot"], "k40c", "1 of 5", "2 of 20"),
    (["lud", "particlefilter"], "k20c", "5 of 45", "6 of 225"), (["lud", "matrixmul"], "k20c", "3 of 25", "5 of 125"),
    (["streamcluster", "hotspot"], "k40c", "4 of 50", "6 of 200"),
    (["streamcluster", "particlefilter", "lud", "hotspot"], "k40c", "8 of 2250", "8 of 9000"),
]


def kernel_tables(name):
    flops, transferred, registers, best, loss = MODELS[name]
    threads = "BLOCK * BLOCK" if name in SQUARE else "BLOCK"
    block = '["BLOCK", "BLOCK"]' if name in SQUARE else '["BLOCK"]'
    steps = f"abs(log2({threads}) - {best.bit_length() - 1})"
    return f"""
[kernels.{name}]
function = "{name}"
parameters = {{ BLOCK = {POWERS[name]} }}
launch = {{ global = ["{16777216 if name not in SQUARE else 4096}"{', "4096"' if name in SQUARE else ''}], block = {block} }}
[simulation.{name}]
flops = {flops}
bytes = {transferred}
registers = {registers}
shared_bytes = "{'8 * BLOCK * BLOCK' if name in ('lud', 'matrixmul') else '0'}"
efficiency = "0.6 * max(0.1, 1 - {loss} * {steps})"
"""


def problem_of(kernels, clocks):
    text = f'name = "{"+".join(kernels)}"\n'
    if clocks:
        text += '[execution]\ncore_clock_mhz = "all"\n'
    text += "".join(kernel_tables(name) for name in kernels)
    if len(kernels) > 1:
        text += f"[workload]\nsteps = [{{ concurrent = {json.dumps(kernels)} }}]\n"
    return text


def run(command, kernels, device, objective, bound="0.8"):
    clocks = objective == "energy"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/problem.toml", "w") as file:
            file.write(problem_of(kernels, clocks))
        words = [command, "tune", f"{folder}/problem.toml", "--device", f"sim:{device}", "--objective", objective, "--strategy",
                 "coordinate", "--no-confirm", "--json", "--store"]

        def tuned(store, *more):
            return json.loads(subprocess.run([*words, f"{folder}/{store}", *more], check=True, stdout=subprocess.PIPE, text=True,
                                             stderr=subprocess.DEVNULL).stdout)

        whole = tuned("whole.db", "--budget", "1")["space"]
        found = tuned("reduced.db", "--occupancy", bound)
    return whole, found["space"], found["evaluated"], found["best"]["configuration"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="ergotune")
    arguments = parser.parse_args()
    print("| set | board | objective | space | reduced | sets run | paper | best (simulated) |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kernels, device, performance, energy in ROWS:
        for objective, paper in (("time", performance), ("energy", energy)):
            whole, reduced, ran, best = run(arguments.command, kernels, device, objective)
            words = ", ".join(str(value) for value in best.values())
            print(f"| {' + '.join(kernels)} | {device} | {objective} | {whole} | {reduced} | {ran} | {paper} | {words} |", flush=True)


if __name__ == "__main__":
    main()
