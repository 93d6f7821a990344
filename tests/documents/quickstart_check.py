"""scripts/quickstart states that a machine is loaded, and only then. Everything that it starts is replaced by a stub."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def quickstart(cpus, built=True):
    """What it prints on a machine with so many CPUs, where the command is built already or not."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        stubs = {"bin/cmake": "case \"$*\" in *WATCH=*) echo \"configured: $*\" >&2;; esac; cp -n made build/release/ergotune", "bin/dpkg-query": "echo ok installed", "bin/nproc": f"echo {cpus}",
                 "build/release/ergotune" if built else "build/release/other": 'echo "ran: $*"', "made": 'echo "ran: $*"'}
        for file, body in stubs.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(f"#!/bin/sh\n{body}\n")
            (folder / file).chmod(0o755)
        (folder / "extensions/watch").mkdir(parents=True)
        (folder / "scripts").mkdir()
        for script in ("quickstart", "common.sh"):
            shutil.copy(ROOT / "scripts" / script, folder / "scripts")
        environment = {**os.environ, "HOME": name, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        return subprocess.run([folder / "scripts/quickstart"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
                              text=True).stdout


def main():
    loaded, idle = quickstart(-1), quickstart(1_000_000)  # the load average is between the two
    faults = []
    if not set(idle.splitlines()) < set(loaded.splitlines()) or len(loaded.splitlines()) != len(idle.splitlines()) + 1:
        faults.append(f"a loaded machine has one line more:\n{loaded}\nan idle one:\n{idle}")
    if "ran: tune" not in idle or "ran: report" not in idle:
        faults.append(f"it tunes and writes a report:\n{idle}")
    if "WATCH=OFF" in idle or idle.count("WATCH=ON") != 2:
        faults.append(f"a command that is built already keeps its extensions:\n{idle}")
    fresh = quickstart(1_000_000, built=False)
    if not 0 < fresh.find("WATCH=OFF") < fresh.find("ran: report") < fresh.find("WATCH=ON"):
        faults.append(f"extensions are built after the first answer:\n{fresh}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
