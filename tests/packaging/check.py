"""What is packaged is what the tree has: versions agree, recipes name options and files that exist, and the wheel works.

    check.py --build FOLDER [--wheel | --deb]
"""

import argparse
import ast
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text(name):
    return (ROOT / name).read_text()


def versions():
    """One version everywhere, and the changelog speaks of it."""
    found = {
        "CMakeLists.txt": re.search(r"^project\(ergotune VERSION ([\d.]+)", text("CMakeLists.txt"), re.M).group(1),
        "pyproject.toml": re.search(r'^version = "(.*)"', text("pyproject.toml"), re.M).group(1),
        "CITATION.cff": re.search(r"^version: (.*)$", text("CITATION.cff"), re.M).group(1).strip('"'),
        "python/ergotune/pkgconfig/ergotune-launcher.pc": re.search(r"^Version: (.*)$", text("python/ergotune/pkgconfig/ergotune-launcher.pc"), re.M).group(1),
        "packaging/conda/recipe.yaml": re.search(r'version: "(.*)"', text("packaging/conda/recipe.yaml")).group(1),
        "CHANGELOG.md": re.search(r"^## ([\d.]+)", text("CHANGELOG.md"), re.M).group(1),
    }
    if len(set(found.values())) != 1:
        yield f"versions differ: {found}"


def cmake_names():
    """Options and cache variables that a configuration may set."""
    files = [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*"), ROOT / "src/CMakeLists.txt", ROOT / "tests/CMakeLists.txt"]
    everything = "\n".join(file.read_text() for file in files)
    return set(re.findall(r"\b(?:option|find_file|find_path|find_program|set)\((ERGOTUNE_\w+)", everything))


def spack():
    """The recipe is Python, names options that CMake has, and every library that it is built with."""
    tree = ast.parse(text("packaging/spack/ergotune/package.py"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]

    def name(call):
        return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")

    defined = {call.args[0].value for call in calls if name(call) == "define"}
    yield from (f"package.py sets {option}, which CMake does not have" for option in sorted(defined - cmake_names()))
    depended = " ".join(call.args[0].value for call in calls if name(call) == "depends_on")
    for library in ("fmt", "cli11", "nlohmann-json", "simdjson", "tomlplusplus", "sqlite", "eigen", "boost", "zlib", "xxhash", "libevent"):
        if library not in depended:
            yield f"package.py does not depend on {library}"


def dockerfile():
    """What it builds with is what scripts/test installs to build; what it calls is there."""
    lines = text("packaging/Dockerfile").replace("\\\n", " ")
    for option in re.findall(r"-D(ERGOTUNE_\w+)", lines):
        if option not in cmake_names():
            yield f"the Dockerfile sets {option}, which CMake does not have"
    for script in re.findall(r"/source/(scripts/[\w-]+)", lines):
        if not os.access(ROOT / script, os.X_OK):
            yield f"the Dockerfile runs {script}, which is no program"
    build = lines.partition("\nFROM")[0] if lines.startswith("FROM") else lines.split("FROM")[1]
    known = text("scripts/common.sh") + text("scripts/test")
    for package in re.findall(r"\b(lib[a-z0-9.+-]+-dev|nlohmann-json3-dev|zlib1g-dev|libjs-[\w.]+)", build):
        if package not in known:
            yield f"the Dockerfile installs {package}, which scripts/test does not"
    for package in re.findall(r"\b((?:lib[a-z0-9.+-]+|nlohmann-json3|zlib1g)-dev|libjs-[\w.]+)", text("scripts/common.sh")):
        needed_by_tests = package in ("libgtest-dev", "libgmock-dev", "librapidcheck-dev", "pybind11-dev")
        if package not in build and not needed_by_tests and "opencl" not in package:
            yield f"the Dockerfile does not install {package}, which scripts/test does"


def sources():
    """What pip builds has every source file, fetches every library that may be missing, and runs under the oldest Python."""
    excluded = re.search(r"^sdist.exclude = \[(.*)\]$", text("pyproject.toml"), re.M).group(1)
    yield from (f"pyproject.toml excludes every folder named {name} from the sdist, src/{name} too; write /{name}"
                for name in re.findall(r'"([^"]+)"', excluded) if not name.startswith("/"))
    wanted = set(re.findall(r"\b([a-z][\w.+-]*-dev)\b", text("cmake/ErgotuneDependencies.cmake")))
    given = set(re.findall(r'package STREQUAL "([^"]+)"', text("cmake/ErgotuneFetch.cmake")))
    if wanted != given:
        yield f"ErgotuneDependencies.cmake and ErgotuneFetch.cmake know different libraries: {sorted(wanted ^ given)}"
    oldest = tuple(int(part) for part in re.search(r'^requires-python = ">=([\d.]+)"', text("pyproject.toml"), re.M).group(1).split("."))
    for file in (ROOT / "python/ergotune").rglob("*.py"):
        tree = ast.parse(file.read_text(), str(file), feature_version=oldest)
        if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
            continue
        notes = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
        if any(isinstance(part, ast.BinOp) for note in notes if note for part in ast.walk(note)):
            yield f"{file.name} needs 'from __future__ import annotations': before Python 3.10 types have no |"


def wheel(build):
    """Made of what is built, unpacked, and used as it stands there."""
    with tempfile.TemporaryDirectory() as folder:
        here = {**os.environ, "ERGOTUNE_NO_BUILD": "1"}
        made = subprocess.run([sys.executable, ROOT / "scripts/make-wheel", build, folder], env=here, capture_output=True, text=True)
        if made.returncode != 0:
            yield f"scripts/make-wheel: {made.stderr}"
            return
        file = pathlib.Path(made.stdout.strip())
        place = pathlib.Path(folder, "site")
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            archive.extractall(place)
            executable = archive.getinfo("ergotune/bin/ergotune").external_attr >> 16
        if executable & 0o111 != 0o111:
            yield "the command in the wheel is no program"
        missing = {f"ergotune/{name}" for name in ("libergotune-launcher.so.0", "bin/libergotune-capture-opencl.so",
                                                   "bin/libergotune-capture-cuda.so", "bin/libergotune-capture-hip.so", "include/ergotune/launcher.h")} - set(names)
        if missing:
            yield f"the wheel lacks what the command and applications need: {sorted(missing)}"
        if not any(name.endswith("/licenses/THIRD_PARTY.md") for name in names):
            yield "the wheel lacks the notices of the software that it contains"
        record = next(name for name in names if name.endswith("/RECORD"))
        listed = [line.rsplit(",", 2)[0] for line in (place / record).read_text().splitlines()]
        if sorted(listed) != sorted(names):
            yield f"RECORD does not list the files: {sorted(set(names) ^ set(listed))}"
        (place / "ergotune/bin/ergotune").chmod(0o755)
        own = {name: value for name, value in os.environ.items() if not name.startswith("ERGOTUNE")}
        code = ("import ergotune, ergotune._command as c; "
                f"r = ergotune.tune({str(ROOT / 'examples/vector_add/vector_add.toml')!r}, device='opencl', budget=2, confirm=False); "
                "assert len(r) == 2, r; print(c.path())")
        used = subprocess.run([sys.executable, "-c", code], env={**own, "PYTHONPATH": str(place), "ERGOTUNE_DEVICE_LOCK": "off"},
                              cwd=folder, capture_output=True, text=True)
        if used.returncode != 0 or str(place) not in used.stdout:
            yield f"the unpacked wheel does not tune: {used.stdout}{used.stderr}"
        yield from linked_program(place / "ergotune", pathlib.Path(folder, "program"), own)


def linked_program(package, program, environment):
    """A program in C++ that links the launcher of a wheel, by find_package and by pkg-config, and runs."""
    program.mkdir()
    (program / "main.cpp").write_text('#include <ergotune/launcher.hpp>\nint main() { return ergotune_kernel_open("none.toml", nullptr) != nullptr; }\n')
    (program / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(one LANGUAGES CXX)\nfind_package(ergotune REQUIRED COMPONENTS launcher)\n"
        "add_executable(by_cmake main.cpp)\ntarget_link_libraries(by_cmake PRIVATE ergotune::launcher)\n")
    ways = {"find_package": f"cmake -S . -B . -DCMAKE_PREFIX_PATH='{package}' && cmake --build . && ./by_cmake",
            "pkg-config": "c++ -std=c++17 main.cpp -o by_pkg_config $(pkg-config --cflags --libs ergotune-launcher) && ./by_pkg_config"}
    for way, commands in ways.items():
        done = subprocess.run(["sh", "-c", commands], cwd=program, capture_output=True, text=True,
                              env={**environment, "PKG_CONFIG_PATH": str(package / "pkgconfig")})
        if done.returncode != 0:
            yield f"a program cannot use the wheel's launcher by {way}: {done.stdout}{done.stderr}"


def deb(build):
    """Made of what is built, unpacked, and used as it stands there."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([ROOT / "scripts/make-deb", build, folder], env={**os.environ, "ERGOTUNE_NO_BUILD": "1"},
                              capture_output=True, text=True)
        if made.returncode != 0:
            yield f"scripts/make-deb: {made.stderr}"
            return
        place = pathlib.Path(folder, "root")
        for package in made.stdout.split():
            subprocess.run(["dpkg-deb", "-x", package, place], check=True)
        for name in ("share/doc/ergotune/copyright", "share/doc/ergotune/docs/capture.md", "share/man/man1/ergotune-tune.1.gz",
                     "share/bash-completion/completions/ergotune", "include/ergotune/launcher.h", "lib/libergotune-launcher.so",
                     "lib/libergotune.a", "lib/pkgconfig/ergotune-launcher.pc", "lib/cmake/ergotune/ergotuneConfig.cmake"):
            if not (place / "usr" / name).resolve().exists():
                yield f"the packages lack {name}"
        own = {name: value for name, value in os.environ.items() if not name.startswith("ERGOTUNE")}
        listed = subprocess.run([place / "usr/bin/ergotune", "capture", "--list", "--json", "--", "true"], env=own, cwd=folder, capture_output=True, text=True)
        if not listed.stdout.startswith("{"):
            yield f"the unpacked package cannot watch a program: {listed.stderr}"


def manual(build):
    """Every verb has a man page, and bash completes verbs and options."""
    share = build / "share"
    listed = subprocess.run([build / "ergotune", "--help"], capture_output=True, text=True, check=True).stdout
    for verb in re.findall(r"^  ([a-z]+)(?:, [a-z]+)*  +\S", listed, re.M):
        page = share / f"man/man1/ergotune-{verb}.1"
        if not page.exists() or "--help" not in page.read_text().replace("\\", ""):
            yield f"{page} is missing or names no option"
    for words, expected in (("ergotune tu", "tune"), ("ergotune tune --dev", "--device"), ("ergotune wisdom w", "why")):
        code = f'. "$0"; COMP_WORDS=({words}); COMP_CWORD={words.count(" ")}; _ergotune; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", code, share / "bash-completion/completions/ergotune"], capture_output=True, text=True)
        if done.stdout.split() != [expected]:
            yield f"bash completes {words!r} to {done.stdout!r}: {done.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--wheel", action="store_true")
    parser.add_argument("--deb", action="store_true")
    arguments = parser.parse_args()
    if arguments.wheel or arguments.deb:
        faults = [*(wheel if arguments.wheel else deb)(arguments.build)]
    else:
        faults = [*versions(), *spack(), *dockerfile(), *sources(), *manual(arguments.build)]
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
