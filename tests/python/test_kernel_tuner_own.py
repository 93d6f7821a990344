"""Kernel Tuner's own tests, from its source distribution, with our functions in the place of its interface."""

import json
import os
import subprocess
import sys
from pathlib import Path

LEAST = 53
#: What does not pass, and why.
REASONS = {}


def test_kernel_tuners_own_tests_pass_with_our_functions(kernel_tuner_source, tmp_path):
    source = kernel_tuner_source
    report = tmp_path / "report.json"
    environment = {**os.environ, "ERGOTUNE_REPORT": str(report),
                   "PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    files = ["test_runners.py", "test_integration.py", "test_observers.py", "test_opencl_functions.py", "test_file_utils.py",
             "test_compiler_functions.py", "test_time_budgets.py", "test_custom_optimizer.py", "test_kernelbuilder.py",
             "test_julia_functions.py", "test_cupy_functions.py", "test_hip_functions.py", "test_cuda_functions.py",
             "strategies/test_strategies.py", "strategies/test_diff_evo.py", "strategies/test_pymoo_strategies.py"]
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "kernel_tuner_in_our_place", "-p", "no:cacheprovider", "-o", "addopts=",
                          *(f"test/{name}" for name in files)], cwd=source, env=environment, capture_output=True, text=True,
                         timeout=280)
    assert report.exists(), run.stdout[-4000:] + run.stderr[-4000:]
    reached = json.loads(report.read_text())
    passed = [test for test, (outcome, _) in reached.items() if outcome == "passed"]
    failed = {test: why for test, (outcome, why) in reached.items() if outcome == "failed"}
    print(f"\n{len(passed)} of {len(reached)} of Kernel Tuner's tests that reach us pass")
    for test, why in failed.items():
        print(f"  {test}: {why}")
    unexplained = [test for test in failed if test.split("::")[-1] not in REASONS]
    assert not unexplained
    assert len(passed) >= LEAST
