"""studies/run finds numbers of ours that no study gave, and draws what it is given."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "studies"))
loader = importlib.machinery.SourceFileLoader("studies_run", str(ROOT / "studies/run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("studies_run", loader))
loader.exec_module(run)
import figures  # noqa: E402

TABLE = """
| statement | paper | ergotune (simulated) |
| --- | --- | --- |
| clock | 1290 MHz | {} |
text with 12 numbers
"""
assert not list(run.numbers_by_hand(TABLE.format("{{a.b:.1f}} MHz (A4000, K20X)")))
assert len(list(run.numbers_by_hand(TABLE.format("1354 MHz")))) == 1
assert len(list(run.numbers_by_hand(TABLE.format("{{a.b:.1f}} of 3 MHz").replace("ergotune (simulated)", "ours")))) == 1
assert not list(run.numbers_by_hand(TABLE.format("3").replace("ergotune (simulated)", "paper too")))

assert list(run.differences({"a": 50.0}, {"a": 52.0, "b": 1})) == ["b is not among the kept numbers"]
assert len(list(run.differences({"a": 50.0, "b": 5000.0}, {"a": 54.0, "b": 5300.0}))) == 2

drawn = figures.plot("a < b", "x", "y", {"line": ([(0, 1), (2, 3)], "line"), "points": ([(1, 1)], "points")})
places = [float(c) for e in xml.etree.ElementTree.fromstring(drawn).iter() if e.tag.endswith("circle") for c in (e.get("cx"), e.get("cy"))]
assert 60 < places[0] < 580 and 40 < places[1] < 320, places
bars = xml.etree.ElementTree.fromstring(figures.bars("b", "J", ["g", "h"], {"one": [1.0, None], "two": [-1.0, 2.0]}))
heights = [float(e.get("height")) for e in bars.iter() if e.tag.endswith("rect")][1:]
assert len(heights) == 3 and abs(heights[0] - heights[1]) < 0.2 and abs(heights[2] - 2 * heights[0]) < 0.2, heights
print("studies: numbers by hand are found, figures drawn")
