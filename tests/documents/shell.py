"""Lines of shell: what they name exists, and those of ergotune run."""

import functools
import json
import os
import pathlib
import re
import shlex
import subprocess

# Programs that every machine of scripts/test has; what they are given is looked at, they are not run.
KNOWN = {"apptainer", "cmake", "cp", "ctest", "curl", "docker", "echo", "export", "install", "module", "pip", "python3", "salloc", "sbatch", "spack", "sqlite3", "srun", "ssh",
         "systemctl", "xargs"}

# Verbs and options that a machine without a GPU cannot run, or not in seconds.
NOT_RUN = {
    "calibrate": "drives a real board for a minute",
    "trace": "needs an energy sensor",
    "temperature": "needs an energy sensor",
    "watch": "serves until it is ended",
    "--reference": "a steady state of many seconds",
    "slurm": "needs an allocation",
    "hostfile": "needs hosts",
}

def commands(text):
    """The commands of a block: comments gone, continued lines joined; (environment, words) each."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        environment = []
        while words and re.match(r"^\w+=", words[0]):
            environment.append(tuple(words.pop(0).split("=", 1)))
        if words:
            yield environment, words


@functools.cache
def help_of(command, words):
    from subprocess import run

    return run([command, *words, "--help"], capture_output=True, text=True, check=True).stdout


def verbs(bench, words=()):
    """Those below a verb, under their headings; options begin with "-", positional arguments with a capital."""
    return re.findall(r"^  ([a-z]+)(?:, [a-z]+)*  +\S", help_of(bench.command, words), re.M)


def examples_in_help(bench, verb):
    """The lines of a verb's help that show how it is called, in the order of the help."""
    text = help_of(bench.command, (verb,) if verb else ())
    return re.findall(r"^(?:Examples?:)?\s*(ergotune .*)$", text[text.rfind("Example"):], re.M)


def unknown_words(bench, words):
    """Verbs and options of a line of ergotune that there are not."""
    path = []
    words = words[:words.index("--")] if "--" in words else words  # what follows is a program's
    while words and not words[0].startswith("-"):
        known = verbs(bench, tuple(path))
        if words[0] not in known:
            if not path:
                yield f"there is no verb {words[0]}"
            break
        path.append(words.pop(0))
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", help_of(bench.command, tuple(path))))
    for word in words:
        if re.match(r"^--?[A-Za-z]", word) and word.partition("=")[0] not in known:
            yield f"{' '.join(['ergotune', *path])} has no option {word}"


def for_this_machine(words):
    """The same line on a machine that has neither an NVIDIA GPU nor ten minutes: (words, what was changed)."""
    changed = []
    words = list(words)
    for i, word in enumerate(words):
        if words[i - 1] in ("--device", "-d") and word.startswith(("cuda", "hip")):
            words[i] = "sim:h100" if word.startswith("cuda") else "sim:mi250x"
        elif words[i - 1] == "--node-command" and word.startswith("ssh "):
            words[i] = "{}"
        elif words[i - 1] in ("--budget", "-b") and re.fullmatch(r"\d+(min|h)", word):
            words[i] = "3"
        if words[i] != word:
            changed.append(f"{word} as {words[i]}")
    if "--budget" in words and not re.search(r"\bsim:|\breplay:", " ".join(words)):
        place = words.index("--budget") + 1
        if words[place].isdigit() and int(words[place]) > 10:
            changed.append(f"a budget of 3 for {words[place]}")
            words[place] = "3"
    if words[1] in ("tune", "measure") and re.search(r"\benergy\b", " ".join(words)) and "--device" not in words and "--sensor" not in words:
        words += ["--device", "sim:a100"]  # an energy needs a sensor
        changed.append("on sim:a100")
    if "--for" in words:  # a process of our own
        words[words.index("--for") + 1] = str(subprocess.Popen(["sleep", "2"]).pid)
        changed.append("for another process")
    elif words[1] in ("program", "energy", "govern") or words[1:3] == ["clocks", "set"]:
        words = [*words[: words.index("--")], "--", "echo", "ran"]
        changed.append("with another program")
    if any(word.startswith("examples/energy_kernels/") for word in words) and "--device" not in words:
        words += ["--device", "sim:h100"]  # they are CUDA only
        changed.append("on sim:h100")
    return words, changed


def cupti_is_here():
    """Whether the command will find CUPTI, whose host side needs no GPU: in the virtual environment that scripts/test makes."""
    environment = os.environ.get("VIRTUAL_ENV", "/nonexistent")
    return bool(list(pathlib.Path(environment).glob("lib/python3*/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12")))


def run_ergotune(scratch, words):
    """Runs one line; yields what is wrong."""
    bench = scratch.bench
    faults = list(unknown_words(bench, words[1:]))
    if faults:
        yield from faults
        return
    reason = next((why for what, why in NOT_RUN.items() if what in words), None)
    if words[1] == "program":
        reason = "runs a program for minutes"
    if words[1:3] == ["clocks", "set"] and "--wisdom" in words:
        reason = "needs records of this machine's GPU"
    if words[1] == "counters" and any(word.startswith("sm_") for word in words) and not cupti_is_here():
        reason = "CUPTI is not here: pip package nvidia-cuda-cupti-cu12"
    if reason:
        bench.say(f"  parsed, not run ({reason}): {' '.join(words)}")
        return
    for word in words[2:]:
        if words[1] != "capture" or word == "./app":  # what it writes is not there before
            scratch.provide(word.removeprefix("replay:"))
    reads_a_store = re.search(r"^  (source TEXT=|store TEXT .*\()ergotune\.db", help_of(bench.command, (words[1],)), re.M)
    if reads_a_store and not [word for word in words[2:3] if not word.startswith("-")]:
        scratch.provide("ergotune.db")
    actual, changed = for_this_machine(words)
    result = scratch.ergotune(*actual[1:])
    for _ in range(2):  # an energy that is measured here: what runs beside it can keep it from being known
        if "--sensor" in actual and result.returncode == 1:
            result = scratch.ergotune(*actual[1:])
    bench.say(f"  ran{' (' + ', '.join(changed) + ')' if changed else ''}: {' '.join(words)}")
    if result.returncode != 0:
        yield f"{' '.join(actual)} ended with {result.returncode}: {result.stderr.strip()[-2000:]}"
    elif not result.stdout.strip() and "restore" not in words and "--for" not in words:
        yield f"{' '.join(actual)} printed nothing"
    elif "--json" in words:
        try:
            json.loads(result.stdout)
        except ValueError as error:
            yield f"{' '.join(actual)} --json: {error}"
    for i, word in enumerate(words):
        if words[i - 1] in ("-o", "--output", "--figure") and not (scratch.path / word).exists():
            yield f"{' '.join(actual)} wrote no {word}"


def program_of_the_build(scratch, environment, words):
    """build/release/tests/test_x, bench/bench_y: a program that is built from this tree, its filter names tests."""
    root, name = scratch.bench.root, pathlib.Path(words[0]).name
    if name.startswith("test_"):
        if not (root / "tests" / name.removeprefix("test_")).exists():
            yield f"no {words[0]} is built"
            return
        built = scratch.bench.build / "tests" / name
        if built.exists():
            listed = scratch.run([str(built), "--gtest_list_tests", *[w for w in words if w.startswith("--gtest_filter")]])
            if not re.search(r"^  \w", listed.stdout, re.M):
                yield f"{' '.join(words)}: the filter names no test"
    elif not [file for file in root.glob("*/**/CMakeLists.txt") if "build" not in file.parts and name in file.read_text()] and not [
        folder for folder in (root / "bench").iterdir() if f"bench_{folder.name}" == name
    ] and not list((root / "fuzz").glob(f"{name}*")):
        yield f"nothing in CMake makes {words[0]}"
    for variable, _ in environment:
        if variable.startswith("ERGOTUNE_") and not any(
            variable in file.read_text() for file in (root / "tests").rglob("*.cpp")
        ):
            yield f"no test reads {variable}"


def look_at(scratch, environment, words):
    """A line that is not ergotune's: presets, tests and files that it names exist."""
    root = scratch.bench.root
    if words[0].startswith(("build/", "./build/")):
        yield from program_of_the_build(scratch, environment, words)
        return
    if words[0].startswith(("./", "scripts/", "bench/", "studies/")):
        if not (root / words[0]).is_file() or not (root / words[0]).stat().st_mode & 0o111:
            yield f"{words[0]} is no program of the repository"
    elif words[0] not in KNOWN and not words[0].endswith(("/pip", "/python", "/ergotune")):
        yield f"{words[0]} is no known program"
    presets = json.loads((root / "CMakePresets.json").read_text())
    for option, value in zip(words, words[1:]):
        if option == "--preset":
            kind = "testPresets" if words[0] == "ctest" else "buildPresets" if "--build" in words else "configurePresets"
            if value not in [preset["name"] for preset in presets[kind]]:
                yield f"{' '.join(words)}: there is no {kind} {value}"
        if option == "-R" and not any(value in file.read_text() for file in (root / "tests").rglob("*.cpp")):
            yield f"{' '.join(words)}: no test is called so"
    for word in words[1:]:
        if re.match(r"^(packaging|examples|scripts|tests|docs)/", word) and not (root / word).exists():
            yield f"there is no {word}"


def check_words(scratch, environment, words):
    scratch.bench.checked += 1
    if words[0] == "ergotune":
        yield from run_ergotune(scratch, words)
        return
    # a && b && c
    part = []
    for word in [*words, "&&"]:
        if word != "&&":
            part.append(word)
        elif part:
            yield from run_ergotune(scratch, part) if part[0] == "ergotune" else look_at(scratch, environment, part)
            part = []


def check_line(scratch, line):
    for environment, words in commands(line):
        yield from check_words(scratch, environment, words)


def check(scratch, block):
    yield from check_line(scratch, block.text)
