"""Compilations of Triton kernels in forked processes. Triton compiles without a GPU where the target is given."""

import os
import subprocess
import sys

import pytest

from ergotune._callables.forks import ForkedCompiles

HERE = os.getpid()

COMPILES = """
import sys
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from ergotune._callables.forks import ForkedCompiles

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

hits = []
triton.knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
source = lambda block: ASTSource(scale, {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": block}, {})
compiled = lambda block: triton.compile(source(block), target=GPUTarget("cuda", 90, 32), options={})
with ForkedCompiles(2) as compiles:
    futures = [compiles.submit(compiled, block) for block in (64, 128, 256, 100)]  # 100 is no power of two
assert hits == [True] * 3, hits
assert all(future.result().asm["cubin"] for future in futures[:3])
assert futures[3].exception() is not None
"""


def test_tritons_code_comes_from_other_processes(tmp_path):
    pytest.importorskip("triton")
    (tmp_path / "compiles.py").write_text(COMPILES)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, tmp_path / "compiles.py"], env={**environment, "TRITON_CACHE_DIR": str(tmp_path / "cache")},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def end_elsewhere(number):
    if os.getpid() != HERE:
        os._exit(1)
    return number


def test_what_a_process_does_not_compile_is_compiled_here():
    with ForkedCompiles(2) as compiles:
        futures = [compiles.submit(end_elsewhere, number) for number in range(3)]
    assert [future.result(timeout=0) for future in futures] == [0, 1, 2]


def test_nothing_waits_after_an_exception():
    with pytest.raises(KeyboardInterrupt), ForkedCompiles(2) as compiles:
        future = compiles.submit(end_elsewhere, 1)
        raise KeyboardInterrupt
    assert future.cancelled()
