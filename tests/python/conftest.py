"""Runs a share of the tests: --share 2/4 takes every fourth, from the second on. ctest runs the shares side by side."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fake_gpu import board, fake_gpu  # noqa: F401  (fixtures)


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="PART/OF: run every OF-th test, beginning with the PART-th")


def pytest_collection_modifyitems(config, items):
    part, of = map(int, config.getoption("--share").split("/"))
    assert 1 <= part <= of
    items[:] = items[part - 1 :: of]


#: Of Kernel Tuner: whose interface ergotune.kernel_tuner has.
VERSION = "1.5.0"


@pytest.fixture(scope="session")
def kernel_tuner_source(tmp_path_factory):
    """Kernel Tuner's source distribution, fetched once for all shares, and unpacked."""
    folder = tmp_path_factory.mktemp("kernel-tuner")
    command = os.environ.get("ERGOTUNE_COMMAND")
    kept = (Path(command).parent if command else folder) / f"kernel_tuner-{VERSION}.tar.gz"
    if not kept.exists():
        fetched = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d",
                                  str(folder), f"kernel_tuner=={VERSION}"], capture_output=True, text=True, timeout=280)
        if fetched.returncode != 0:
            pytest.skip(f"Kernel Tuner's source distribution cannot be fetched: {fetched.stderr.strip()[-200:]}")
        draft = kept.with_suffix(f".part-{os.getpid()}")
        shutil.copy(next(folder.glob("*.tar.gz")), draft)
        os.replace(draft, kept)
    with tarfile.open(kept) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"kernel_tuner-{VERSION}"
