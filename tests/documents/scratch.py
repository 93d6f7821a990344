"""Folders to run documents in: away from this machine's settings, with the files that the documents speak of."""

import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile

# The problem that documents call gemm.toml and the like: two configurations that compile and run in no time, on
# whatever device is here, simulated ones too.
PROBLEM = """
name = "gemm"
[constants]
SIZE = 4096
[parameters]
MWG = [64]
NWG = [16, 64]
{more}
[kernel]
function = "copy"
arguments = [
  {{ name = "a", type = "float32", count = "SIZE" }},
  {{ name = "b", type = "float32", count = "SIZE", access = "write" }},
]
[kernel.launch]
global = ["SIZE"]
block = ["MWG"]
[kernel.source.opencl]
text = 'kernel void copy(global const float* a, global float* b) {{ int i = get_global_id(0); b[i] = a[i] + 0.0f * NWG; }}'
[kernel.source.c]
text = 'void copy(const float* a, float* b) {{ for (int i = 0; i < SIZE; ++i) b[i] = a[i] + 0.0f * NWG; }}'
[kernel.source.cuda]
text = '__global__ void copy(const float* a, float* b) {{ b[blockIdx.x * MWG + threadIdx.x] = a[blockIdx.x * MWG + threadIdx.x] + 0.0f * NWG; }}'
"""


class Scratch:
    """One folder. A file that a document speaks of is made when it is first needed."""

    def __init__(self, bench, path):
        self.bench, self.path = bench, path
        path.mkdir()
        (path / "sys").mkdir()
        for folder in ("examples", "packaging", "tests", "scripts"):
            (path / folder).symlink_to(bench.root / folder)
        for name, text in bench.files.items():
            self.write(name, text)

    def write(self, name, text):
        (self.path / name).write_text(text)
        return name

    def run(self, words, environment=(), timeout=240):
        """Runs a command here, on the fake board and an empty /sys."""
        own = {
            "XDG_CACHE_HOME": str(self.bench.folder / "cache"),
            "XDG_DATA_HOME": str(self.path / "data"),
            "ERGOTUNE_STATE_DIR": str(self.path / "state"),
            "ERGOTUNE_HELPER_SOCKET": str(self.path / "nobody"),
            "ERGOTUNE_COMMAND": self.bench.command,  # what the Python package starts as workers
            "ERGOTUNE_SYSFS_ROOT": str(self.path / "sys"),
            "ERGOTUNE_NVML": str(self.bench.build / "tests/fakes/nvml/libnvidia-ml.so.1"),
            "ERGOTUNE_FAKE_NVML_STATE": str(self.path / "board"),
        }
        try:
            return subprocess.run(words, cwd=self.path, env={**os.environ, **own, **dict(environment)}, timeout=timeout,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", f"not done after {timeout} s")
        except OSError as error:
            return subprocess.CompletedProcess(words, 127, "", str(error))

    def ergotune(self, *words):
        return self.run([self.bench.command, *words])

    def must(self, *words):
        result = self.ergotune(*words)
        if result.returncode != 0:
            raise RuntimeError(f"ergotune {' '.join(words)}\n{result.stderr}")

    def provide(self, name):
        """Makes the file of this name if it is one that documents speak of and is not here."""
        maker = MAKERS.get(name.rstrip("/"))
        if maker and not (self.path / name).exists():
            maker(self, name.rstrip("/"))


def problem(scratch, name):
    scratch.write(name, PROBLEM.format(more=""))


def problem_with_clocks(scratch, name):
    scratch.write(name, PROBLEM.format(more="[execution]\ncore_clock_mhz = [1200, 1395]"))


def store(scratch, name):
    """A store of two sessions with energies: simulated, which every output of it says."""
    problem_with_clocks(scratch, "stored.toml")
    for device in ("sim:a100", "sim:h100"):
        scratch.must("tune", "stored.toml", "--device", device, "--strategy", "brute_force", "--no-confirm", "--store", name,
                     "--quiet")


def gemm_store(scratch, name):
    scratch.must("tune", "examples/gemm/gemm.toml", "--device", "sim:a100", "--budget", "30", "--store", name, "--quiet")


def cache(scratch, name):
    """A Kernel Tuner cache with a clock, a time, an energy and a power."""
    store(scratch, "for-cache.db")
    scratch.must("tune", "examples/clocks/full_load.toml", "--device", "sim:a100", "--strategy", "brute_force", "--no-confirm",
                 "--objective", "energy", "--store", "for-cache.db", "--quiet")
    scratch.must("export", "for-cache.db", "--format", "kt", "-o", name)


def recorded(scratch, name):
    """A recording of gemm.toml."""
    problem(scratch, "gemm.toml")
    scratch.must("tune", "gemm.toml", "--device", "sim:a100", "--strategy", "brute_force", "--no-confirm", "--objective",
                 "energy", "--store", "for-recording.db", "--quiet")
    scratch.must("export", "for-recording.db", "--format", "kt", "-o", name)


def packed_cache(scratch, name):
    recorded(scratch, name[:-3])
    with open(scratch.path / name[:-3], "rb") as plain, gzip.open(scratch.path / name, "wb") as packed:
        shutil.copyfileobj(plain, packed)


def wisdom(scratch, name):
    """A folder with the wisdom of a kernel called gemm."""
    store(scratch, "for-wisdom.db")
    scratch.must("export", "for-wisdom.db", "--format", "wisdom", "-o", name)
    file = (scratch.path / name / "copy.wisdom").rename(scratch.path / name / "gemm.wisdom")
    file.write_text(file.read_text().replace('"kernel":"copy"', '"kernel":"gemm"', 1))


def recordings(scratch, name):
    (scratch.path / name).mkdir()
    scratch.must("tune", "examples/vector_add/vector_add.toml", "--device", "sim:a100", "--strategy", "brute_force",
                 "--no-confirm", "--store", "for-scores.db", "--quiet")
    scratch.must("export", "for-scores.db", "--format", "kt", "-o", f"{name}/vector_add.json")


def samples(scratch, name):
    rows = [f"{clock},{40 + 0.05 * clock * max(0.8, clock / 1200) ** 2},{1000 / clock}" for clock in range(300, 1600, 100)]
    scratch.write(name, "clock_mhz,power_w,time_s\n" + "\n".join(rows) + "\n")


def application(scratch, name):
    """An OpenCL program of somebody else's."""
    (scratch.path / name).symlink_to(scratch.bench.build / "tests/opencl_program")


def captured(scratch, name):
    scratch.provide("./app")
    scratch.must("capture", "-o", name, "--", "./app")


def kernel(scratch, name):
    """A kernel as people have it."""
    (scratch.path / name).write_text("__global__ void add(float* c, const float* a, int n) {\n"
                                     "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] += a[i];\n}\n")


def opencl_kernel(scratch, name):
    (scratch.path / name).write_text("kernel void add(global float* c, int n) {\n  int i = get_global_id(0);\n  if (i < n) c[i] += 1;\n}\n")


def pipeline(scratch, name):
    """Two kernels, with their source."""
    for file in (name, "pipeline.cl", "portable.h"):
        shutil.copy(scratch.bench.root / "examples/several" / file, scratch.path)


def host_program(scratch, name):
    (scratch.path / name).write_text("program.add(queue, (4096,), (64,), c, np.int32(4000))\n")


MAKERS = {
    "kernel.cu": kernel,
    "kernel.cl": opencl_kernel,
    "run.py": host_program,
    "./app": application,
    "captured": captured,
    "gemm.toml": problem,
    "pipeline.toml": pipeline,
    "problem.toml": problem,
    "saxpy.toml": problem_with_clocks,
    "ergotune.db": store,
    "results.db": store,
    "tuned.db": gemm_store,
    "before.db": store,
    "after.db": store,
    "results.db:1": lambda scratch, name: scratch.provide("results.db"),
    "results.db:2": lambda scratch, name: scratch.provide("results.db"),
    "recorded_a100.json": recorded,
    "recorded_mi250x.json": recorded,
    "cache.json": cache,
    "recorded.json": recorded,
    "convolution_A100.json.gz": packed_cache,
    "recordings": recordings,
    "wisdom": wisdom,
    "wisdom-of-a-colleague": wisdom,
    "samples.csv": samples,
}


class Bench:
    """Where all of it is tried; gone afterwards."""

    def __init__(self, root, build, compiler):
        self.root, self.build, self.compiler = root, build.resolve(), compiler
        self.command = str(self.build / "ergotune")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ergotune-documents-"))
        self.checked, self.made = 0, 0
        self.files = {}  # by name: blocks of the page that are files

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self):
        self.made += 1
        return Scratch(self, self.folder / str(self.made))

    def say(self, words):
        print(words, flush=True)
