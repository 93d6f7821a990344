"""The page of the studies marks what breaks its rule and finds numbers of ours that no study gave or that are compared with nothing;
figures show what they are given; a study without its data fails."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "studies"))
loader = importlib.machinery.SourceFileLoader("studies_run", str(ROOT / "studies/run"))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("studies_run", loader))
loader.exec_module(run)
import figures  # noqa: E402
import going_green  # noqa: E402
import page  # noqa: E402
import study  # noqa: E402

TABLE = """
| statement | paper | ergotune (simulated) |
| --- | --- | --- |
| clock | 1290 MHz | {} |
text with 12 numbers
"""
assert not list(page.numbers_by_hand(TABLE.format("{{a.b:.1f}} MHz (A4000, K20X)")))
assert len(list(page.numbers_by_hand(TABLE.format("1354 MHz")))) == 1
assert len(list(page.numbers_by_hand(TABLE.format("{{a.b:.1f}} of 3 MHz").replace("ergotune (simulated)", "ours")))) == 1
assert not list(page.numbers_by_hand(TABLE.format("3").replace("ergotune (simulated)", "paper too")))

numbers = {"a.b": 10.0, "low": 9.0, "r": -0.3, "r.low": -0.5, "r.high": -0.1, "s": -0.3, "s.low": -0.5, "s.high": 0.1}
shown = lambda text: page.render(text, numbers)
for agreeing in ("~ 12.4", "~ 8.1", "in 9..11", "in low..", "in ..10", "sign +"):
    assert shown("{{a.b:.0f %s}}" % agreeing) == "10", agreeing
for differing in ("~ 12.6", "~ 7.9", "~ -10", "in 11..", "in ..low", "sign -"):
    assert shown("{{a.b:.0f %s}}" % differing) == "≠ 10", differing
assert shown("{{r:.1f sign -}} {{r:.1f sign +}} {{s:.1f sign -}}") == "-0.3 ≠ -0.3 ≠ -0.3"  # an interval that holds 0 has no sign
assert shown("{{low:.0f holds 9..10 a.b}}-{{a.b:.0f}} {{low:.0f holds 8..10 a.b}} {{low:.0f holds 9..11 a.b}}") == "9-10 ≠ 9 ≠ 9"
assert shown("{{a.b:.0f put in 10..10}} {{a.b:.0f put ~ 20}} {{a.b:.0f again in 9..9}}") == "10† ≠ 10† ≠ 10‡"
document = "{{item p.one}}{{a.b:.0f ~ 10}} {{a.b:.0f put in 11..11}} {{a.b:.0f again ~ 10}}{{item p.two}}{{r:.1f sign +}} %s: {{agreements p}}, {{breaks p}}"
rows = "{{agreements p.one}} {{breaks p.one}} {{agreements p.two}} {{breaks p.two}}"
assert shown(document % rows) == "10 ≠ 10† 10‡≠ -0.3 1 of 1 1 of 2 0 of 1 none: 1 of 2, 1 of 2"  # the rows add up to the whole
assert not list(page.scored_elsewhere_or_twice(document % rows))
assert len(list(page.scored_elsewhere_or_twice(document % "{{agreements p.one}} {{breaks p.one}}"))) == 1
assert len(list(page.scored_elsewhere_or_twice(document % rows.replace("{{breaks p.one}}", "")))) == 1
assert len(list(page.scored_elsewhere_or_twice(document % (rows + "{{agreements p.two}}")))) == 1
assert not list(page.numbers_without_rule(TABLE.format("{{a.b ~ 3}} MHz")))
assert not list(page.numbers_without_rule(TABLE.format("{{a.b}} MHz: not compared")))
assert len(list(page.numbers_without_rule(TABLE.format("{{a.b}} MHz")))) == 1
assert not list(page.numbers_without_rule(TABLE.format("{{a.b}} MHz").replace("(simulated)", "(not compared)")))

study.RECORDED = pathlib.Path("no such folder")
try:
    going_green.recorded_gemm(study.Study("going-green", "ergotune", tempfile.mkdtemp()))
except RuntimeError as error:
    assert "gemm_A100" in str(error)
else:
    raise AssertionError("a study without its data ran")

assert list(run.differences({"a": 50.0}, {"a": 50.0, "b": 1})) == ["b is not among the kept numbers"]
assert len(list(run.differences({"a": 50.0, "b": 5000.0}, {"a": 50.1, "b": 5000.0}))) == 1
searched = lambda now: list(run.differences({"a": 50.0}, {"a": now}, {"a"}, "{{a:.0f in 40..60}}"))
assert not searched(58.0) and not searched(50.1) and len(searched(64.0)) == 1

drawn = figures.plot("a < b", "x", "y", {"line": ([(0, 1), (2, 3)], "line"), "points": ([(1, 1)], "points")})
places = [float(c) for e in xml.etree.ElementTree.fromstring(drawn).iter() if e.tag.endswith("circle") for c in (e.get("cx"), e.get("cy"))]
assert 60 < places[0] < 580 and 40 < places[1] < 320, places
marked = figures.plot("m", "MHz", "W", {"t": ([(1, 1), (2, 2)], "triangles")}, [1.5], {"ridge": 1.2})
assert marked.count("stroke-dasharray") == 2 and marked.count("<path") == 2 and ">ridge<" in marked
bars = xml.etree.ElementTree.fromstring(figures.bars("b", "J", ["g", "h"], {"one": [1.0, None], "two": [-1.0, 2.0]}))
heights = [float(e.get("height")) for e in bars.iter() if e.tag.endswith("rect")][1:]
assert len(heights) == 3 and abs(heights[0] - heights[1]) < 0.2 and abs(heights[2] - 2 * heights[0]) < 0.2, heights
print("studies: rules are applied, numbers by hand are found, figures drawn")
