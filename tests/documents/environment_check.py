"""docs/environment.md lists every ERGOTUNE_ variable that the program reads, and no other."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# set by ergotune for its own processes, or read by tests only
INTERNAL = {"ERGOTUNE_ASKS_CUPTI", "ERGOTUNE_LAYER_CUPTI", "ERGOTUNE_LAYER_SOCKET", "ERGOTUNE_LIVE", "ERGOTUNE_SIMULATED_PACE"}

read = set()
for folder, endings in {"src": ("cpp", "hpp"), "extensions": ("cpp", "hpp"), "python": ("py", "cpp")}.items():
    for ending in endings:
        for file in (ROOT / folder).rglob(f"*.{ending}"):
            read |= set(re.findall(r"""["'](ERGOTUNE_[A-Z_]+)["']""", file.read_text()))
listed = set(re.findall(r"`(ERGOTUNE_[A-Z_]+)`", (ROOT / "docs/environment.md").read_text()))
faults = [f"docs/environment.md lacks {name}" for name in sorted(read - listed - INTERNAL)]
faults += [f"docs/environment.md has {name}, which the program does not read" for name in sorted(listed - read)]
print("\n".join(faults) or f"{len(listed)} variables")
sys.exit(1 if faults else 0)
