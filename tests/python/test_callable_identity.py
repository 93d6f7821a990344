"""What the stored results of a Python function depend on: code that it reaches through objects, classes and containers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import ergotune

HELPER = """
import functools

def scaled(x): return x * SCALE

class Base:
    def inherited(self, x): return scaled(x)

class Operation(Base):
    def method(self, x): return scaled(x)
    def __call__(self, x): return scaled(x)
    @staticmethod
    def of_class(x): return scaled(x)
    @classmethod
    def of_kind(cls, x): return scaled(x)
    @property
    def factor(self): return scaled(1.0)

class Slotted:
    __slots__ = ("function",)

def decorated(function):
    @functools.wraps(function)
    def wrapper(x): return function(x) + SCALE
    return wrapper
"""

SCRIPT = """
import functools, json, sys
import numpy as np
import ergotune, helper

class Local:
    def method(self, x): return helper.scaled(x)

class Holder:
    def __init__(self):
        self.functions, self.names = [helper.scaled], {helper.scaled: "scaled"}
        self.itself = self
        self.generator = np.random.default_rng(1)

class Options(dict):
    __getattr__ = dict.__getitem__

class Proxy:
    def __getattr__(self, name): return Proxy()

@helper.decorated
def plain(x): return x

class Derived(helper.Operation): pass

made, local, holder, derived, slotted = helper.Operation(), Local(), Holder(), Derived(), helper.Slotted()
slotted.function = helper.scaled
options, proxy = Options(function=helper.scaled), Proxy()
table, nested, several = {"a": helper.scaled}, [({"b": helper.Operation},)], {helper.scaled, plain, len}
nested += [nested, nested]
bound, vectorized, applied = made.method, np.vectorize(helper.scaled), functools.partial(map, helper.scaled)

sine = helper.decorated(np.mean)

def by_default(x, function=helper.scaled): return function(x)

functions = {
    "method": lambda x, n: made.method(x), "call": lambda x, n: made(x), "inherited": lambda x, n: derived.inherited(x),
    "static": lambda x, n: helper.Operation.of_class(x), "class": lambda x, n: made.of_kind(x), "property": lambda x, n: x * made.factor,
    "new": lambda x, n: helper.Operation().method(x), "local": lambda x, n: local.method(x), "held": lambda x, n: holder.functions[0](x),
    "options": lambda x, n: options.function(x), "proxy": lambda x, n: helper.scaled(x) if proxy.any else x, "slot": lambda x, n: slotted.function(x), "dict": lambda x, n: table["a"](x), "nested": lambda x, n: nested[0][0]["b"].of_class(x),
    "set": lambda x, n: [f(x) for f in several][0], "bound": lambda x, n: bound(x), "vectorized": lambda x, n: vectorized(x),
    "partial": lambda x, n: np.array(list(applied(x))), "default": lambda x, n: by_default(x), "decorated": lambda x, n: plain(x),
    "installed": lambda x, n: sine(x)}

if __name__ == "__main__":
    for name, function in functions.items():
        function.__name__ = name
        result = ergotune.tune_callable(function, {"n": [1, 2]}, arguments=(np.arange(9.0),), device="host", confirm=False, max_seconds=0.01, verify=False,
                                        min_repeats=2, store=name + ".db", in_process=True, quiet=True)
        print(json.dumps([name, result.evaluated]))
"""


def run(folder, seed):
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


def test_code_that_is_reached_through_objects_classes_and_containers_belongs_to_the_identity(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER.replace("SCALE", "2.0"))
    first = run(tmp_path, "1")
    assert first == dict.fromkeys(first, 2) and len(first) > 10
    assert run(tmp_path, "2") == dict.fromkeys(first, 0)
    (tmp_path / "helper.py").write_text(HELPER.replace("SCALE", "3.0"))
    assert run(tmp_path, "3") == first


class Scaling:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor


scaling = Scaling(2)


def scales(x, n):
    return scaling.apply(x)


def test_what_an_object_holds_belongs_to_the_identity(tmp_path, monkeypatch):
    def evaluated():
        return ergotune.tune_callable(scales, {"n": [1, 2]}, arguments=(np.ones(9),), device="host", confirm=False, max_seconds=0.01, min_repeats=2,
                                      verify=False, store=tmp_path / "r.db", in_process=True, quiet=True).evaluated

    assert [evaluated(), evaluated()] == [2, 0]
    monkeypatch.setattr(scaling, "factor", 3)
    assert evaluated() == 2


OBJECTS = """
import dataclasses, enum
import numpy as np
import ergotune

class Kind(enum.Enum):
    DOUBLE = 2

@dataclasses.dataclass
class Scaling:
    kind: Kind = Kind.DOUBLE
    parts: list = dataclasses.field(default_factory=list)
    def apply(self, x): return x * self.kind.value

class Plain:
    generator = np.random.default_rng(1)
    def apply(self, x): return x

scaling, plain = Scaling(), Plain()
table = {"scaling": scaling, "kinds": {Plain, Kind, Scaling}}

def work(x, n):
    return plain.apply(table["scaling"].apply(x))

if __name__ == "__main__":
    LATE
    result = ergotune.tune_callable(work, {"n": [1, 2]}, arguments=(np.arange(9.0),), device="host", confirm=False, max_seconds=0.01, quiet=True)
    print(any("worker" in note for note in result.best_measurement["warnings"]))
"""


@pytest.mark.parametrize("late, noted", [("", False), ("scaling.parts = [1]", True), ("work = lambda x, n: plain.apply(scaling.apply(x))", False)])
def test_objects_of_the_script_are_those_of_a_worker_unless_they_change(tmp_path, late, noted):
    if "lambda" in late:
        pytest.importorskip("cloudpickle")
    (tmp_path / "script.py").write_text(OBJECTS.replace("LATE", late or "pass"))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [str(noted)], done.stderr
