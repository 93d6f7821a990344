"""Every public name and keyword of Kernel Tuner's works or says what to do; docs/kernel-tuner-names.md has the table."""

import ast
import importlib
import inspect
import os
import re
from pathlib import Path

import ergotune.kernel_tuner as ours

DOCUMENT = Path(__file__).parents[2] / "docs" / "kernel-tuner-names.md"
BEGIN, END = "<!-- made by tests/python/test_kernel_tuner_names.py -->\n", "<!-- end -->\n"


def definitions(source):
    """Kernel Tuner's modules with their public functions and classes."""
    root = source / "kernel_tuner"
    for file in sorted(root.rglob("*.py")):
        module = ".".join(file.relative_to(root).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        tree = ast.parse(file.read_text())
        kinds = (ast.FunctionDef, ast.ClassDef)
        yield module, [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def look_up(module, name):
    """(works, message)"""
    found = importlib.import_module("ergotune.kernel_tuner" + ("." + module if module else ""))
    try:
        getattr(found, name)
        return True, ""
    except ours.NotSupported as refusal:
        return False, str(refusal).split(": ", 1)[1]


def test_signatures_are_kernel_tuners(kernel_tuner_source):
    trees = {module: nodes for module, nodes in definitions(kernel_tuner_source)}
    wanted = {"interface": ("tune_kernel", "run_kernel", "tune_cache", "tune_kernel_T1"),
              "integration": ("store_results", "create_device_targets")}
    for module, names in wanted.items():
        for node in trees[module]:
            if node.name in names:
                theirs = [a.arg for a in node.args.args] + ([node.args.kwarg.arg] if node.args.kwarg else [])
                assert list(inspect.signature(getattr(ours, node.name)).parameters) == theirs, node.name


def test_the_document_has_every_keyword_of_tune_kernel():
    table = DOCUMENT.read_text().split(BEGIN)[0].split("| keyword of tune_kernel |")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(inspect.signature(ours.tune_kernel).parameters)


def table(source):
    lines = ["| module | names that work | instead of the others |", "| --- | --- | --- |"]
    absent = {}  # modules without a counterpart, by what to use instead
    for module, nodes in definitions(source):
        works, messages = [], {}
        for node in nodes:
            good, message = look_up(module, node.name)
            if good:
                works.append(node.name)
            else:
                messages.setdefault(message, []).append(node.name)
        if not nodes:
            continue
        if not works and len(messages) == 1:
            absent.setdefault(*messages, []).append(f"`{module or 'kernel_tuner'}`")
            continue
        others = "; ".join(f"{', '.join(f'`{n}`' for n in names)}: " + message
                           for message, names in messages.items())
        lines.append(f"| `{module or 'kernel_tuner'}` | {', '.join(f'`{n}`' for n in works)} | {others} |")
    lines += ["", "| modules without a counterpart | use instead |", "| --- | --- |"]
    lines += [f"| {', '.join(modules)} | {message} |" for message, modules in absent.items()]
    return "\n".join(lines) + "\n"


def test_the_document_has_every_name(kernel_tuner_source):
    made = table(kernel_tuner_source)
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    written, after = rest.split(END)
    if os.environ.get("ERGOTUNE_WRITE_DOCUMENT"):
        DOCUMENT.write_text(before + BEGIN + made + END + after)
    else:
        assert written == made, "run this test with ERGOTUNE_WRITE_DOCUMENT=1"
