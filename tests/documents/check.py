"""What the documents show works as it stands there.

    check.py --build FOLDER [--compiler CXX] DOCUMENT...     a document's path below the repository, or "help", or "help.2/3"

Blocks of shell, TOML, JSON, Python, C++ and CMake are run, loaded or compiled, each in a scratch folder; tables of expressions
are evaluated; links and paths must lead somewhere. "help" runs the examples that the command's own help shows, "help.2/3" every
third from the second on. A comment before a block or table marks an exception:

    <!-- test: fragment -->              TOML: a part of a problem file, put into a small one
    <!-- test: fragment sim:h100 -->     the same, run on this simulated device (sim:a100)
    <!-- test: here -->                  TOML: run on the best device of this machine as well
    <!-- test: file NAME -->             a file of this page: the blocks after it find it; CUDA C++ and HIP are compiled
    <!-- test: file NAME here -->        a problem file, run on the best device of this machine as well
    <!-- test: policy -->                TOML: a policy of ergotuned
    <!-- test: skip REASON -->           not run
    <!-- test: expressions -->           a table: expression, value
    <!-- test: refused expressions -->   a table: expression, words of the message
"""

import argparse
import pathlib
import re
import sys

import blocks
import markdown
import shell
from scratch import Bench

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check_document(bench, name):
    """Yields what is wrong, with its place."""
    text = (ROOT / name).read_text()
    bench.files = {}
    yield from (f"{name}:{line}: {words}" for line, words in markdown.faults(text))
    yield from (f"{name}:{line}: {words}" for line, words in markdown.dead_links(ROOT, ROOT / name, text))
    for block in markdown.blocks(text):
        if block.marker.startswith("skip "):
            bench.say(f"{name}:{block.line}: not run: {block.marker[5:]}")
            continue
        if block.marker.startswith("file "):
            file = block.marker.split()[1]
            bench.files[file] = block.text
            if not file.endswith(".toml"):
                continue  # what comes after it runs it
        check = blocks.CHECKS.get("table" if block.language == "table" else block.language)
        if check is None:
            yield f"{name}:{block.line}: no test knows blocks of \"{block.language}\""
            continue
        yield from (f"{name}:{block.line}: {words}" for words in check(bench.fresh(), block))


def check_help(bench, share):
    part, of = map(int, share.split("/")) if share else (1, 1)
    number = 0
    verbs = shell.verbs(bench)
    shown = sum(len(shell.examples_in_help(bench, verb)) for verb in ["", *verbs])
    if shown < 40:
        yield f"the help shows only {shown} examples"
    if len(verbs) < 10:
        yield f"the help names only {len(verbs)} verbs"
    for verb in ["", *verbs]:
        lines = shell.examples_in_help(bench, verb)
        if not lines:
            yield f"ergotune {verb} --help shows no example"
        # Examples build on each other only by what they are given: each has a folder of its own.
        for line in lines:
            number += 1
            if re.search(r"\bexamples/", line):
                yield f"ergotune {verb} --help names a file that only the repository has: {line}"
            if number % of != part % of:
                continue
            yield from (f"ergotune {verb} --help: {words}" for words in shell.check_line(bench.fresh(), line))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("documents", nargs="+")
    arguments = parser.parse_args()
    faults = []
    with Bench(ROOT, arguments.build, arguments.compiler) as bench:
        for document in arguments.documents:
            faults += check_help(bench, document[5:]) if re.fullmatch(r"help(\.\d+/\d+)?", document) else check_document(bench, document)
        for fault in faults:
            print(f"FAULT {fault}")
        print(f"{bench.checked} checked, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
