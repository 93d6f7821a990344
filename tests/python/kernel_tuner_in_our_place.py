"""A pytest plugin for Kernel Tuner's own tests: its interface functions are ours, and who called them is written down.

The file named by ERGOTUNE_REPORT gets {test: outcome} of every test that reached one of them.
"""

import functools
import json
import os

import kernel_tuner
import kernel_tuner.integration
import kernel_tuner.interface

import ergotune.kernel_tuner as ours

reached, outcomes = set(), {}


def counted(function):
    @functools.wraps(function)
    def call(*arguments, **keywords):
        reached.add(os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" ", 1)[0])
        return function(*arguments, **keywords)

    return call


for name in ("tune_kernel", "run_kernel", "tune_cache", "tune_kernel_T1"):
    setattr(kernel_tuner, name, counted(getattr(ours, name)))
    setattr(kernel_tuner.interface, name, getattr(kernel_tuner, name))
for name in ("store_results", "create_device_targets"):
    setattr(kernel_tuner.integration, name, counted(getattr(ours, name)))


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        text = str(report.longrepr).strip().splitlines()[-1] if report.outcome == "failed" else ""
        outcomes[report.nodeid] = [report.outcome, text]


def pytest_sessionfinish():
    with open(os.environ["ERGOTUNE_REPORT"], "w") as file:
        json.dump({test: outcome for test, outcome in outcomes.items() if test in reached}, file, indent=1)
