#!/usr/bin/env python3
"""Whether an open page slows a session down, and how fast the page is with very many configurations.

    bench/watch/paired.py --ergotune build/release/ergotune [--pairs 10] [--budget 20] [--rows 100000]

Pairs of the same session, one of them with a page open in a headless Chromium on this very machine, in alternating order: wall
time of the search, and the median over configurations of the ratio of the measured times. Then a store of this many
configurations is opened: when its first picture stands, when all is loaded, and how long the views take to be drawn anew.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/page"))
import devtools  # noqa: E402
import page_test  # noqa: E402


def tune(options, folder, name, page, browser):
    words = [options.ergotune, "tune", str(options.problem), "--device", options.device, "--store", str(folder / f"{name}.db"), "--strategy",
             "random", "--seed", "7", "--budget", str(options.budget), "--no-confirm", "--no-early-stop", "--json"]
    server = shown = rows = None
    if page:
        server = page_test.Watch(folder / f"{name}.db", "--wait")
        shown = browser.page(server.url)
    begun = time.monotonic()
    process = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "ERGOTUNE_DEVICE_LOCK": "off"})
    out, seconds = process.stdout, time.monotonic() - begun
    if process.returncode != 0:
        sys.exit(process.stderr)
    if page:
        rows = shown.wait(f"window.ergotune && ergotune.rows.n === {options.budget} && ergotune.rows.n")
        ticks = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        options.share.append((int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK") / seconds)
        shown.close()
        server.close()
    told = json.loads(subprocess.run([options.ergotune, "show", str(folder / f"{name}.db"), "--json", "--page"], capture_output=True, text=True).stdout)
    return json.loads(out)["seconds"], told["page"]["results"]["columns"]["time"], rows


def paired(options, folder, browser):
    walls, times = [], []
    for pair in range(options.pairs):
        order = [False, True] if pair % 2 else [True, False]
        found = {}
        for page in order:
            found[page] = tune(options, folder, f"{pair}-{page}", page, browser)
        walls.append(found[True][0] / found[False][0])
        both = [a / b for a, b in zip(found[True][1], found[False][1]) if a and b]
        times.append(statistics.median(both))
        print(f"pair {pair}: wall {walls[-1]:.4f}, measured times {times[-1]:.4f} (median of {len(both)}), the page had {found[True][2]} rows", flush=True)
    for name, list_ in (("wall time of the session", walls), ("measured times", times)):
        error = statistics.stdev(list_) / len(list_) ** 0.5
        print(f"with over without a page, {name}: mean {statistics.mean(list_):.4f} ± {1.96 * error:.4f} (95 %), median {statistics.median(list_):.4f}")
    print(f"the server used {100 * statistics.mean(options.share):.2f} % of one core, at idle priority")


def large(options, folder, browser):
    page_test.cache(folder / "large.json", options.rows)
    subprocess.run([options.ergotune, "import", str(folder / "large.json"), "--store", str(folder / "large.db")], check=True, stdout=subprocess.DEVNULL)
    watch = page_test.Watch(folder / "large.db")
    count = round(options.rows ** 0.5) ** 2
    page = browser.page(None)
    begun = time.monotonic()
    page.call("Page.navigate", url=watch.url + "#explore")
    page.wait("window.ergotune && ergotune.figures.length && ergotune.drawn()[0] > 0")
    print(f"{count} configurations: first picture after {time.monotonic() - begun:.2f} s", flush=True)
    page.wait(f"ergotune.rows.n === {count} && ergotune.model.loading === null")
    print(f"  all of them after {time.monotonic() - begun:.2f} s", flush=True)
    page.wait("ergotune.model.head && ergotune.model.head.best")
    print(f"  the answer after {time.monotonic() - begun:.2f} s")
    page.value("new Promise(done => setTimeout(done, 1500))")
    took = "(() => {{ const t = performance.now(); {} ; return performance.now() - t; }})()"
    for words, what in (("open explore", "ergotune.openView('explore')"), ("another colour", "(s => { s.value = s.value ? '' : 'energy'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('select')].find(s => s.parentNode.textContent.startsWith('colour')))"),
                        ("a brush that keeps a fifth", "ergotune.keep.brushes.set('time', [0.0012, 0.0014]); ergotune.views.find(v => v.name === 'explore').redraw()"),
                        ("all figures, seen or not", "ergotune.figures.forEach(f => f.draw())"),
                        ("point under the mouse", "ergotune.figures[0].canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: 600, clientY: 500}))"),
                        ("open table", "ergotune.openView('table')"), ("sort table", "document.querySelectorAll('.virtual th button')[1].click()"),
                        ("scroll table", "document.querySelector('.virtual').scrollTop = 500000; document.querySelector('.virtual').dispatchEvent(new Event('scroll'))")):
        values = [page.value(took.format(what)) for _ in range(5)]
        print(f"  {words}: {statistics.median(values):.1f} ms (of 5: {min(values):.1f} to {max(values):.1f})")
    watch.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ergotune", required=True)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--problem", default=ROOT / "examples/vector_add/vector_add.toml")
    options = page_test.options = parser.parse_args()
    options.share = []
    browser = devtools.Browser()
    with tempfile.TemporaryDirectory(prefix="ergotune-watch-") as folder:
        if options.pairs:
            paired(options, pathlib.Path(folder), browser)
        if options.rows:
            large(options, pathlib.Path(folder), browser)
    browser.close()


if __name__ == "__main__":
    main()
