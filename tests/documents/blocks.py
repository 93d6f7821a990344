"""What is done with a block of each language."""

import ast
import json
import math
import re
import subprocess
import time

import gpu
import shell

# What a fragment of a problem file is put into. Its kernel is never compiled: simulated devices run it.
AROUND = {
    "": 'name = "around"\n',
    "constants": "[constants]\nSIZE = 4096\nN = 256\nlimit = 128\n",
    "parameters": "[parameters]\nblock_size_x = [32, 64, 128]\ntile = [1, 2, 4]\ntile_m = [1, 2]\ntile_n = [1, 2]\nvector = [1, 2]\n",
    "execution": "[execution]\ncore_clock_mhz = 3\n",
    "kernel": "[kernel]\nfunction = \"f\"\n[kernel.source.c]\ntext = 'void f(void) {}'\n",
}


def with_surroundings(fragment):
    """A whole problem file: the fragment's keys and tables, and of AROUND the tables that it does not have."""
    parts = re.split(r"^(?=\[)", fragment, flags=re.M)
    has = {re.match(r"\[+([\w]+)", part).group(1) for part in parts[1:]}
    # a fragment may add a table below [kernel]; it replaces [kernel] itself only when it has that
    if "kernel" in has and not re.search(r"^\[kernel\]", fragment, re.M):
        has.discard("kernel")
    around = [text for name, text in AROUND.items() if name and name not in has]
    return AROUND[""] + parts[0] + "".join(around) + "".join(parts[1:])


def check_toml(scratch, block):
    """The problem loads, its space is built, and a simulated device runs some of it, under its objective and its plans."""
    scratch.bench.checked += 1
    if block.marker == "policy":
        yield from check_policy(scratch, block)
        return
    text = with_surroundings(block.text) if block.marker.startswith("fragment") else block.text
    device = next((word for word in block.marker.split() if word.startswith("sim:")), "sim:a100")
    scratch.write("block.toml", text)
    data = scratch.bench.root / "tests/data/problems"
    for file in (*data.glob("*.c"), *data.glob("*.cl")):
        (scratch.path / file.name).symlink_to(file)
    (scratch.path / "gemm.cu").symlink_to(data / "gemm.cl")
    (scratch.path / "include").mkdir()
    space = scratch.ergotune("space", "block.toml", "--profile", "h100", "--json")
    if space.returncode != 0:
        yield space.stderr.strip()
        return
    if json.loads(space.stdout)["valid"] == 0:
        yield "the space is empty"
    if "[parameters]" not in text or "space_only" in text:
        return
    on = ["--max-seconds", "0.1"] if "[program]" in text else ["--device", device]  # a program runs here
    tune = ["tune", "block.toml", *on, "--no-store", "--budget", "3", "--json", "--quiet"]
    yield from gpu.check(scratch, "block.toml")
    if "here" in block.marker.split():
        result = scratch.ergotune("tune", "block.toml", "--no-store", "--budget", "3", "--no-confirm", "--json", "--quiet")
        if result.returncode != 0 or json.loads(result.stdout)["best"] is None:
            yield f"on the best device here: {result.stderr.strip()}"
    plans = sorted(set(re.findall(r"^\[\[plans\.(\w+)\]\]", text, re.M)))
    for command in ([*tune, "--plan", ""], *[[*tune, "--plan", plan] for plan in plans]):
        result = scratch.ergotune(*command)
        if result.returncode != 0:
            yield f"ergotune {' '.join(command)}: {result.stderr.strip()}"


def check_policy(scratch, block):
    """ergotuned starts with it, and ends when it is asked to."""
    policy, socket = scratch.path / "policy.toml", scratch.path / "ergotuned.sock"
    policy.write_text(block.text)
    policy.chmod(0o644)
    scratch.path.chmod(0o755)
    daemon = subprocess.Popen([str(scratch.bench.build / "ergotuned"), "--policy", str(policy), "--socket", str(socket), "--state-dir",
                               str(scratch.path / "daemon"), "--sysfs-root", str(scratch.path / "sys"), "--nvml", "/nowhere"],
                              stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not socket.exists() and daemon.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    daemon.terminate()
    words = daemon.communicate()[1]
    if daemon.returncode != 0 or "policy" in words and "wrong" in words:
        yield f"ergotuned does not take this policy ({daemon.returncode}): {words.strip()}"


def check_unit(scratch, block):
    """A unit of systemd: what it starts is a line of ergotune, and the bounds of systemd's own syntax are kept."""
    scratch.bench.checked += 1
    lines = [line.partition("=")[2] for line in block.text.splitlines() if line.startswith("ExecStart=")]
    if len(lines) != 1:
        yield "a unit has one ExecStart"
        return
    words = lines[0].split()
    if words[0] != "/usr/bin/ergotune" or "%" in lines[0]:
        yield f"not a line of ergotune for systemd: {lines[0]}"
    yield from shell.unknown_words(scratch.bench, words[1:])


def check_json(scratch, block):
    """It is JSON; a search space is loaded too."""
    scratch.bench.checked += 1
    try:
        document = json.loads(block.text)
    except ValueError as error:
        yield f"no JSON: {error}"
        return
    if "tune_params" in document:
        scratch.write("block.json", block.text)
        result = scratch.ergotune("space", "block.json", "--json")
        if result.returncode != 0:
            yield result.stderr.strip()


def check_python(scratch, block):
    """It runs where the package is built, with a small budget; elsewhere it is parsed."""
    scratch.bench.checked += 1
    try:
        ast.parse(block.text)
    except SyntaxError as error:
        yield str(error)
        return
    if not list((scratch.bench.build / "python").glob("ergotune/*.so")):
        scratch.bench.say(f"  parsed, not run (the Python package is not built): line {block.line}")
        return
    import sys

    code = re.sub(r"budget=\d+", "budget=3", block.text)
    result = scratch.run([sys.executable, "-c", code], {"PYTHONPATH": str(scratch.bench.build / "python"), "MPLBACKEND": "Agg"}.items())
    if result.returncode != 0:
        yield result.stderr.strip()[-2000:]


def check_cpp(scratch, block):
    """It compiles against the public headers; what it defines stands at namespace scope, statements after it in a function."""
    scratch.bench.checked += 1
    root = scratch.bench.root
    definitions, _, statements = block.text.rpartition("};\n")
    code = "#include <memory>\n#include <string>\n#include <vector>\n"
    code += "".join(f'#include "ergotune/{header.relative_to(root / "include/ergotune")}"\n'
                    for header in sorted((root / "include/ergotune").rglob("*.hpp")))
    code += f"{definitions}{'};' if definitions else ''}\nvoid block() {{\n{statements}\n}}\n"
    scratch.write("block.cpp", code)
    result = scratch.run([scratch.bench.compiler, "-std=c++20", "-fsyntax-only", f"-I{root}/include", "block.cpp"])
    if result.returncode != 0:
        yield result.stderr.strip()[:2000]


def check_cmake(scratch, block):
    """The lines for users of the library are lines of examples/cpp, which the install test builds."""
    scratch.bench.checked += 1
    tested = (scratch.bench.root / "examples/cpp/CMakeLists.txt").read_text()
    yield from (f"examples/cpp/CMakeLists.txt does not have: {line}" for line in block.text.splitlines() if line not in tested)


def code_of(cell):
    return cell.strip().strip("`").replace("\\|", "|")


def restriction(scratch, expression):
    """ergotune's judgement on a restriction: (holds, message)."""
    scratch.write("one.json", json.dumps({"tune_params": {"x": [1]}, "restrictions": [expression]}))
    result = scratch.ergotune("space", "one.json", "--json")
    return result.returncode == 0 and json.loads(result.stdout)["valid"] == 1, result.stderr.strip()


def check_expressions(scratch, block):
    """Each has the value that stands beside it, here and in Python."""
    functions = {name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "log", "log2", "exp")}
    for expression, value in [map(code_of, row) for row in block.rows]:
        scratch.bench.checked += 1
        python = repr(eval(expression, {"math": math, **functions}))  # our own documents, nobody else's
        if python != value:
            yield f"{expression} is {python} in Python, not {value}"
        holds, message = restriction(scratch, f"({expression}) == ({value})")
        if not holds:
            yield f"{expression} is not {value} here: {message}"


def check_refused_expressions(scratch, block):
    for expression, words in [map(code_of, row) for row in block.rows]:
        scratch.bench.checked += 1
        holds, message = restriction(scratch, expression)
        if holds or words not in message:
            yield f"{expression}: expected \"{words}\", got \"{message}\""


def check_table(scratch, block):
    tables = {"expressions": check_expressions, "refused expressions": check_refused_expressions}
    if block.marker not in tables:
        yield f"no test knows tables of \"{block.marker}\""
        return
    if not block.rows:
        yield "the table is empty"
    yield from tables[block.marker](scratch, block)


CHECKS = {
    "sh": shell.check,
    "toml": check_toml,
    "json": check_json,
    "ini": check_unit,
    "python": check_python,
    "cpp": check_cpp,
    "cmake": check_cmake,
    "table": check_table,
}
