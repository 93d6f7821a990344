"""Figures of the studies as SVG: points and lines over two axes, and groups of bars."""

import html
import math

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"]
LEFT, TOP, WIDTH, HEIGHT = 60, 40, 520, 280


def nice_ticks(low, high):
    step = 10 ** math.floor(math.log10((high - low) or 1))
    while (high - low) / step < 4:
        step /= 2
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def frame(title, x_name, y_name, labels, height=380):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="12">',
           f'<text x="{LEFT}" y="24" font-size="14">{html.escape(title)}</text>',
           f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
           f'<text x="320" y="365" text-anchor="middle">{html.escape(x_name)}</text>',
           f'<text x="16" y="180" text-anchor="middle" transform="rotate(-90 16 180)">{html.escape(y_name)}</text>']
    for i, label in enumerate(labels):
        out.append(f'<text x="592" y="{54 + 18 * i}" fill="{COLOURS[i % len(COLOURS)]}">{html.escape(str(label))}</text>')
    return out


def spread(values):
    """Where an axis begins and ends, with room above and below."""
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1
    return low - room, high + room


def plot(title, x_name, y_name, series, levels=(), marks=None):
    """`series` maps a label to (list of (x, y), "points", "triangles" or "line"); `levels` are dashed lines at these y; `marks` maps
    the label of a dashed line to its x."""
    points = [p for values, _ in series.values() for p in values]
    marks = marks or {}
    x0, x1 = spread([p[0] for p in points] + list(marks.values()))
    y0, y1 = spread([p[1] for p in points] + list(levels))
    place = lambda p: (LEFT + WIDTH * (p[0] - x0) / (x1 - x0), TOP + HEIGHT - HEIGHT * (p[1] - y0) / (y1 - y0))
    out = frame(title, x_name, y_name, series)
    for tick in nice_ticks(x0, x1):
        out.append(f'<text x="{place((tick, y0))[0]:.1f}" y="338" text-anchor="middle">{tick:g}</text>')
    for tick in nice_ticks(y0, y1):
        out.append(f'<text x="{LEFT - 6}" y="{place((x0, tick))[1] + 4:.1f}" text-anchor="end">{tick:g}</text>')
    dashes = 'stroke="#777" stroke-width="0.8" stroke-dasharray="5 4"'
    for level in levels:
        y = place((x0, level))[1]
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" {dashes}/>')
    for i, (label, at) in enumerate(marks.items()):
        x = place((at, y0))[0]
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + HEIGHT}" {dashes}/>')
        out.append(f'<text x="{x + 3:.1f}" y="{TOP + 12 + 11 * (i % 6)}" font-size="9" fill="#555">{html.escape(label)}</text>')
    for i, (values, kind) in enumerate(series.values()):
        colour = COLOURS[i % len(COLOURS)]
        placed = [place(p) for p in values]
        if kind == "line":
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in placed)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        elif kind == "triangles":
            out += [f'<path d="M{a:.1f} {b - 3:.1f}l3 5h-6z" fill="{colour}" fill-opacity="0.6"/>' for a, b in placed]
        else:
            out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{colour}" fill-opacity="0.6"/>' for a, b in placed]
    return "\n".join([*out, "</svg>\n"])


def bars(title, y_name, groups, series):
    """`series` maps a label to a value for each of `groups`, or None where there is none."""
    values = [v for of in series.values() for v in of if v is not None]
    y0, y1 = 1.05 * min(0, *values), 1.05 * max(0, *values) or 1
    height = lambda v: HEIGHT * (v - y0) / (y1 - y0)
    turned = len(groups) > 12
    out = frame(title, "", y_name, series, 440 if turned else 380)
    for tick in nice_ticks(y0, y1):
        out.append(f'<text x="{LEFT - 6}" y="{TOP + HEIGHT - height(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    group_width = WIDTH / len(groups)
    width = 0.8 * group_width / len(series)
    for g, group in enumerate(groups):
        x = LEFT + group_width * (g + 0.5)
        turn = f' transform="rotate(-40 {x:.1f} 334)" font-size="8"' if turned else ""
        out.append(f'<text x="{x:.1f}" y="334" text-anchor="{"end" if turned else "middle"}"{turn}>{html.escape(str(group))}</text>')
        for i, of in enumerate(series.values()):
            if of[g] is None:
                continue
            top = TOP + HEIGHT - height(max(of[g], 0))
            out.append(f'<rect x="{x - 0.4 * group_width + i * width:.1f}" y="{top:.1f}" width="{width:.1f}" '
                       f'height="{abs(height(of[g]) - height(0)):.1f}" fill="{COLOURS[i % len(COLOURS)]}"/>')
    return "\n".join([*out, "</svg>\n"])
