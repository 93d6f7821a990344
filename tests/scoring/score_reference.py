"""Independent calculation of the worked example in score_test.cpp, from the text of the method alone.

Run: python3 tests/scoring/score_reference.py   (plain Python; prints the numbers that the test expects)

The space: 26 configurations, 24 of them valid. Three runs of a strategy are given by hand.
"""

import math
from bisect import bisect_right
from statistics import mean, median

# value (s) and evaluation time (s) of the valid configurations, and evaluation times of the failed ones
VALID = [(1.0, 5.0), (1.04, 6.0), (1.3, 5.5), (1.8, 6.5), (2.0, 7.0), (2.1, 5.0), (2.4, 6.0), (2.6, 6.0), (3.0, 8.0),
         (3.2, 7.0), (3.3, 6.5), (3.7, 7.0), (4.0, 7.5), (4.4, 8.0), (4.5, 8.0), (5.0, 8.5), (5.5, 9.0), (6.0, 9.0),
         (6.5, 9.5), (7.0, 9.5), (8.0, 10.0), (9.0, 10.0), (11.0, 11.0), (15.0, 12.0)]
FAILED = [3.0, 4.0]
# per run: (time at which an evaluation finished, value; None for a failure)
RUNS = [
    [(3.0, None), (10.0, 3.2), (18.5, 5.0), (24.5, 2.4), (28.5, None), (35.0, 1.8), (44.5, 6.5), (50.0, 1.3), (56.0, 1.04),
     (61.0, 1.0)],
    [(9.0, 5.5), (16.5, 4.0), (23.5, 2.0), (26.5, None), (33.0, 1.8), (45.0, 15.0), (50.0, 2.1), (55.5, 1.3)],
    [(8.0, 3.0), (14.0, 2.6), (19.0, 1.0), (30.0, 11.0), (40.0, 9.0), (47.0, 3.7), (52.0, 2.1), (60.5, 4.5)],
]

values = [v for v, _ in VALID]
descending = sorted(values, reverse=True)
N = len(values)
S = N + len(FAILED)
optimum, middle = min(values), median(values)
median_time = median([t for _, t in VALID] + FAILED)


def m(p):
    cutoff = optimum + (middle - optimum) * (1 - p)
    i = next(k for k, v in enumerate(descending) if v <= cutoff)
    if p != 1 and descending[i] == optimum:
        i -= 1
    return math.ceil(i / (N + 1 - i))


def t(p):
    return m(p) * median_time


def linspace(a, b, n):
    return [a + (b - a) * i / (n - 1) for i in range(n)]


times = linspace(t(0.01), t(0.95), 1000)
budget = 1.1 * t(0.95)
tau = mean(t for _, t in VALID) + len(FAILED) / S * mean(FAILED)
ks = [max(1, round(x / tau)) for x in times]
distinct = sorted(set(ks))
best_of = [descending[min(N - 1, round(k * (N + 1) / (k + 1)))] for k in distinct]


def pchip(xs, ys, at):
    """Hermite cubics with SciPy's slopes, written out."""
    if len(xs) == 1:
        return [ys[0] for _ in at]
    h = [b - a for a, b in zip(xs, xs[1:])]
    d = [(b - a) / w for a, b, w in zip(ys, ys[1:], h)]
    if len(xs) == 2:
        slopes = [d[0], d[0]]
    else:
        slopes = [0.0] * len(xs)
        for k in range(1, len(xs) - 1):
            if d[k - 1] * d[k] > 0:
                w1, w2 = 2 * h[k] + h[k - 1], h[k] + 2 * h[k - 1]
                slopes[k] = (w1 + w2) / (w1 / d[k - 1] + w2 / d[k])

        def edge(h0, h1, d0, d1):
            s = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
            if math.copysign(1, s) != math.copysign(1, d0) or d0 == 0:
                return 0.0
            if math.copysign(1, d0) != math.copysign(1, d1) and abs(s) > 3 * abs(d0):
                return 3 * d0
            return s

        slopes[0] = edge(h[0], h[1], d[0], d[1])
        slopes[-1] = edge(h[-1], h[-2], d[-1], d[-2])
    out = []
    for x in at:
        k = min(max(bisect_right(xs, x) - 1, 0), len(xs) - 2)
        u = x - xs[k]
        c = (3 * d[k] - 2 * slopes[k] - slopes[k + 1]) / h[k]
        b = (slopes[k] - 2 * d[k] + slopes[k + 1]) / h[k] ** 2
        out.append(ys[k] + u * (slopes[k] + u * (c + u * b)))
    return out


baseline = pchip(distinct, best_of, linspace(distinct[0], distinct[-1], 1000))

# the curve of the strategy: isotonic (decreasing) regression of ranks by the min-max formula
ascending = sorted(values)
points = []
for run in RUNS:
    best = None
    for when, value in run:
        if value is not None and (best is None or value < best):
            best = value
        if best is not None:
            points.append((when, ascending.index(best)))
points.sort()
xs = sorted(set(x for x, _ in points))
weights = [sum(1 for x, _ in points if x == u) for u in xs]
ys = [mean(y for x, y in points if x == u) for u in xs]


def block_mean(a, b):
    return sum(w * y for w, y in zip(weights[a:b + 1], ys[a:b + 1])) / sum(weights[a:b + 1])


# decreasing fit: value at i = min over a <= i of max over b >= i of the mean of [a, b]
fit = [min(max(block_mean(a, b) for b in range(i, len(xs))) for a in range(i + 1)) for i in range(len(xs))]
end = median([run[-1][0] for run in RUNS])


def curve(x):
    x = min(x, end)
    if x <= xs[0]:
        rank = fit[0]
    elif x >= xs[-1]:
        rank = fit[-1]
    else:
        k = bisect_right(xs, x)
        rank = fit[k - 1] + (x - xs[k - 1]) / (xs[k] - xs[k - 1]) * (fit[k] - fit[k - 1])
    return ascending[round(rank)]


improvement = [(b - curve(x)) / (b - optimum) for x, b in zip(times, baseline)]

print("median evaluation time", median_time)
print("m(0.01), m(0.5), m(0.95)", m(0.01), m(0.5), m(0.95))
print("first and last time", times[0], times[-1], "budget", budget, "tau", tau)
print("distinct k", distinct, "values", best_of)
print("baseline[0, 250, 500, 750, 999]", [baseline[i] for i in (0, 250, 500, 750, 999)])
print("curve[0, 250, 500, 750, 999]", [curve(times[i]) for i in (0, 250, 500, 750, 999)])
print("score", repr(mean(improvement)))


def expected_evaluations(within):
    spent = successes = 0
    for run in RUNS:
        hits = [k for k, (_, v) in enumerate(run) if v is not None and v <= optimum * (1 + within)]
        successes += bool(hits)
        spent += hits[0] + 1 if hits else len(run)
    return spent / successes


print("evaluations to 5 %", expected_evaluations(0.05), "to 1 %", expected_evaluations(0.01))
