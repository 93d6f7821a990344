"""Runs the examples of docs/python-kernels.md on this machine: python3 bench/triton/pages.py [WORD...], those with one of the words."""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

page = (Path(__file__).resolve().parents[2] / "docs/python-kernels.md").read_text()
failed = 0
for number, code in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL), 1):
    if sys.argv[1:] and not any(word in code for word in sys.argv[1:]):
        continue
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"example{number}.py"
        script.write_text(code)
        began = time.monotonic()
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    absent = re.search(r"No module named '(\w+)'", done.stderr)
    verdict = f"left out: {absent[1]} is not installed" if absent else "ran" if done.returncode == 0 else "FAILED"
    print(f"example {number}: {verdict} ({time.monotonic() - began:.1f} s)\n{done.stdout}{'' if absent else done.stderr[-2500:]}", flush=True)
    failed += verdict == "FAILED"
sys.exit(failed > 0)
