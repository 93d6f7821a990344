"""The documentation site: scripts/docs builds it.

The pages are those of this folder. What the program knows is generated: the options of the command (ERGOTUNE_COMMAND), the Python
package (PYTHONPATH) and the public C++ headers (doxygen). A part that is not there is replaced by a sentence that says so.
"""

import importlib.util
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent
COMMAND = os.environ.get("ERGOTUNE_COMMAND") or shutil.which("ergotune")
sys.path.insert(0, str(ROOT / "tests/documents"))
import shell  # noqa: E402  reads the command's help, for the tests too

project = "ergotune"
release = re.search(r"^project\(ergotune VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
author = "the ergotune authors"
language = "en"
extensions = ["myst_nb"]
nb_execution_mode = "off"  # notebooks are shown as they were run; tests/python/test_notebook.py runs them again
exclude_patterns = ["measurements", "requirements.txt"]
html_theme = "furo"
html_title = f"ergotune {release}"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# -- Python: autodoc of the package, where it is built for this interpreter
try:
    import ergotune  # noqa: F401
    HAS_PYTHON = True
except ImportError:
    HAS_PYTHON = False
if HAS_PYTHON:
    extensions += ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
    autodoc_typehints = "signature"
    autodoc_member_order = "bysource"
    autodoc_mock_imports = ["optuna"]  # an optional package
    napoleon_use_ivar = True  # attributes that are properties are described once

# -- C++: doxygen reads the public headers, breathe shows them
HAS_CPP = bool(shutil.which("doxygen")) and importlib.util.find_spec("breathe") is not None
if HAS_CPP:
    extensions.append("breathe")
    DOXYGEN = ROOT / "build/docs/doxygen"
    breathe_projects = {"ergotune": str(DOXYGEN / "xml")}
    breathe_default_project = "ergotune"


def run_doxygen():
    """XML of include/ergotune; a warning of doxygen ends the build."""
    DOXYGEN.mkdir(parents=True, exist_ok=True)
    options = {
        "PROJECT_NAME": "ergotune",
        "INPUT": ROOT / "include/ergotune",
        "OUTPUT_DIRECTORY": DOXYGEN,
        "STRIP_FROM_PATH": ROOT / "include",
        "STRIP_FROM_INC_PATH": ROOT / "include",
        "GENERATE_HTML": "NO",
        "GENERATE_LATEX": "NO",
        "GENERATE_XML": "YES",
        "EXTRACT_ALL": "YES",
        "QUIET": "YES",
        "WARN_AS_ERROR": "FAIL_ON_WARNINGS",
        "JAVADOC_AUTOBRIEF": "YES",
        "AUTOLINK_SUPPORT": "NO",
        "MACRO_EXPANSION": "YES",
        "EXPAND_ONLY_PREDEF": "YES",
        "PREDEFINED": "__cplusplus=202002L",
    }
    text = "\n".join(f"{key} = {value}" for key, value in options.items())
    subprocess.run(["doxygen", "-"], input=text, text=True, check=True)


class Bench:
    command = COMMAND


def command_reference():
    """One section for each verb, with what its --help prints."""
    if not COMMAND:
        return "*The command was not built when this site was: `ergotune VERB --help` prints this page's content.*\n"
    parts = []

    def add(words, level):
        help_text = shell.help_of(COMMAND, words).rstrip()
        parts.append(f"{'#' * level} {' '.join(['ergotune', *words])}\n\n```text\n{help_text}\n```\n")
        for verb in shell.verbs(Bench, words):
            add((*words, verb), min(level + 1, 4))

    verbs = shell.verbs(Bench)
    if not verbs:
        raise RuntimeError("no verb was found in ergotune --help")
    for verb in verbs:
        add((verb,), 2)
    return "\n".join(parts)


def verbs_in_python():
    """A table of the functions that the help of each verb names."""
    if not COMMAND:
        return "*The command was not built when this site was.*\n"
    rows = [(verb, shell.help_of(COMMAND, (verb,)).partition("\nIn Python: ")[2]) for verb in shell.verbs(Bench)]
    calls = ((verb, re.sub(r"(ergotune\.\w+(?:\.\w+)*(?:\([^()]*\))?)", r"`\1`", " ".join(text.split()))) for verb, text in rows)
    return "\n".join(["| command | Python |", "| --- | --- |", *(f"| `{verb}` | {text} |" for verb, text in calls)]) + "\n"


def rewrite_links(folder, text):
    """Links of a page in `folder` to files that are not part of the site become the file's path in the repository."""

    def replace(match):
        label, target = match.group(1), match.group(2).partition("#")[0]
        if not target or re.match(r"\w+:", target):
            return match.group(0)
        path = (folder / target).resolve()
        if not path.exists():
            return match.group(0)  # Sphinx reports it
        if path.is_relative_to(DOCS) and not path.is_relative_to(DOCS / "measurements") and path.is_file():
            return match.group(0) if folder.is_relative_to(DOCS) else f"[{label}]({path.relative_to(DOCS)})"
        path = path.relative_to(ROOT)
        return f"`{path}`" if str(path).endswith(label.strip("`/")) else f"{label} (`{path}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replace, text)


GENERATED = re.compile(r"^:::\{eval-rst\}\n(.*?)^:::$", re.S | re.M)


def read_source(_, docname, source):
    text = source[0]
    if docname == "cli":
        text = text.replace("<!-- generated: ergotune VERB --help -->", command_reference())
    if docname == "python":
        text = text.replace('<!-- generated: the line "In Python" of ergotune VERB --help -->', verbs_in_python())
    if docname == "examples":
        gallery = (ROOT / "examples/README.md").read_text().partition("\n")[2]
        text = text.replace("<!-- generated: examples/README.md -->", rewrite_links(ROOT / "examples", gallery))
    absent = {"python-api": None if HAS_PYTHON else "*The Python package was not built when this site was.*",
              "cpp-api": None if HAS_CPP else "*doxygen was not there when this site was built: read `include/ergotune`.*"}.get(docname)
    # MyST takes reStructuredText in a fence of backticks only; the tests run such fences
    text = GENERATED.sub(lambda part: absent or f"```{{eval-rst}}\n{part.group(1)}```", text)
    source[0] = rewrite_links((DOCS / docname).parent, text)


def not_declared_again(record):
    """Each header opens the namespace again, and C names a structure twice; breathe declares them as often."""
    return "Duplicate C++ declaration" not in str(record.msg)


def setup(app):
    if HAS_CPP:
        run_doxygen()
        for handler in logging.getLogger("sphinx").handlers:
            handler.filters.insert(0, not_declared_again)  # before the filter that turns warnings into errors
    app.connect("source-read", read_source)
