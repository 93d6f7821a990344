// The figures' contents: scatter of very many points, lines, parallel coordinates, maps of two parameters.

// Names of a parameter's values in order, for an axis; null where they are numbers far apart enough to be an axis themselves.
function categories(key) {
  if (!key.startsWith('parameter:')) return null;
  const p = rows.parameters.find(p => p.name === key.slice(10));
  return p.values.some(v => typeof v !== 'number') ? p.values.map(String) : null;
}
// Of a parameter with few numbers those, for the axis.
function ticksAt(key) {
  const p = key.startsWith('parameter:') && rows.parameters.find(p => p.name === key.slice(10));
  return p && p.values.length <= 20 && p.values.every(v => typeof v === 'number') ? [...p.values].sort((a, b) => a - b) : null;
}
function canBeLog(list, n) { for (let i = 0; i < n; ++i) if (list[i] <= 0) return false; return true; }

// A scatter plot. `spec()` gives {x, y: {key, log}, colour: key or '', shown: Uint8Array or null, marks, lines, title}.
// Points on the same pixels are drawn once: a hundred thousand cost no more than the pixels there are.
function scatter(parent, spec, more = {}) {
  let last = null;
  const paint = (surface, width, height) => {
    const s = spec(), xs = rows.values(s.x.key), ys = rows.values(s.y.key), n = Math.min(rows.n, xs.length, ys.length);
    const good = i => (!s.shown || s.shown[i]) && xs[i] === xs[i] && ys[i] === ys[i] && (!s.x.log || xs[i] > 0) && (!s.y.log || ys[i] > 0);
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity, count = 0;
    for (let i = 0; i < n; ++i) if (good(i)) {
      ++count;
      if (xs[i] < x0) x0 = xs[i]; if (xs[i] > x1) x1 = xs[i]; if (ys[i] < y0) y0 = ys[i]; if (ys[i] > y1) y1 = ys[i];
    }
    const wide = (a, b, log) => log ? [a / (b / a) ** 0.04, b * (b / a) ** 0.04] : [a - 0.04 * (b - a), b + 0.04 * (b - a)];
    if (!count) { surface.text(width / 2, height / 2, 'nothing to show', {fill: colour('soft'), anchor: 'middle'}); last = null; return; }
    const [xa, xb] = wide(x0, x1, s.x.log), [ya, yb] = wide(y0, y1, s.y.log);
    const right = s.colour ? 96 : 14;
    const axes = frame(surface, width, height, {right,
      x: {from: xa, to: xb, log: s.x.log, unit: unitOf(s.x.key), title: axisTitle(s.x.key), names: categories(s.x.key), at: ticksAt(s.x.key)},
      y: {from: ya, to: yb, log: s.y.log, unit: unitOf(s.y.key), title: axisTitle(s.y.key), names: categories(s.y.key), at: ticksAt(s.y.key)}});
    const {horizontal: h, vertical: v, box} = axes;
    const px = new Float32Array(n).fill(NaN), py = new Float32Array(n).fill(NaN);
    const shift = categories(s.x.key) || s.x.key.startsWith('parameter:') ? k => ((k * 2654435761 % 1000) / 1000 - 0.5) * 8 : () => 0;
    for (let i = 0; i < n; ++i) if (good(i)) { px[i] = h.place(xs[i]) + shift(i + 1); py[i] = v.place(ys[i]); }
    const tint = tintOf(s.colour, n, s.shown);
    const r = count > 20000 ? 1 : count > 2000 ? 1.5 : 2.5;
    if (surface.cloud && count > 5000) surface.cloud(px, py, n, tint.of, tint.colours, r);
    else {
      const w = Math.ceil(width), taken = new Uint8Array(w * Math.ceil(height));
      for (let i = 0; i < n; ++i) {
        if (px[i] !== px[i]) continue;
        const cell = Math.floor(py[i]) * w + Math.floor(px[i]), c = tint.of(i);
        if (taken[cell] === c + 1) continue;
        taken[cell] = c + 1;
        surface.dot(px[i], py[i], r, tint.colours[c]);
      }
    }
    for (const line of s.lines ? s.lines(xs, ys, i => px[i] === px[i], n) : [])
      surface.line(line.points.map(([a, b]) => [h.place(a), v.place(b)]), line);
    let legend = 0;
    const legendEntry = (fill, label) => { surface.dot(width - right + 14, 24 + 16 * legend, 4, fill); surface.text(width - right + 22, 28 + 16 * legend++, label.slice(0, 12), {fill: colour('soft'), size: 11}); };
    if (s.colour) for (const [fill, label] of tint.legend) legendEntry(fill, label);
    for (const mark of s.marks || []) {
      const i = mark.place;
      if (i === undefined || px[i] !== px[i]) continue;
      surface.dot(px[i], py[i], 6, mark.fill);
      surface.text(px[i] + (px[i] > width - 130 ? -9 : 9), py[i] - 7, mark.label, {fill: mark.fill, bold: true, anchor: px[i] > width - 130 ? 'end' : 'start'});
    }
    last = {px, py, n, s, box};
  };
  const hintOf = (i, s) => `${labelOf(s.x.key)} ${show(rows.values(s.x.key)[i], unitOf(s.x.key))}, ${labelOf(s.y.key)} ${show(rows.values(s.y.key)[i], unitOf(s.y.key))}` +
    `${s.colour ? `, ${labelOf(s.colour)} ${s.colour === 'status' ? rows.statusOf(i) : valueWords(s.colour, i)}` : ''}\n${rows.configuration(i)}`;
  const find = (x, y) => {
    if (!last) return null;
    let best = -1, least = 144;
    for (let i = 0; i < last.n; ++i) { const dx = last.px[i] - x, dy = last.py[i] - y, d = dx * dx + dy * dy; if (d < least) { least = d; best = i; } }
    return best < 0 ? null : {place: best, text: hintOf(best, last.s), x: last.px[best], y: last.py[best]};
  };
  const order = () => {
    if (!last) return [];
    const list = [];
    for (let i = 0; i < last.n; ++i) if (last.px[i] === last.px[i]) list.push(i);
    list.sort((a, b) => last.py[b] - last.py[a]);
    return list.slice(0, 500).map(i => ({place: i, text: hintOf(i, last.s), x: last.px[i], y: last.py[i]}));
  };
  const csv = () => {
    const s = spec(), xs = rows.values(s.x.key), ys = rows.values(s.y.key);
    const list = [[...rows.parameters.map(p => p.name), labelOf(s.x.key), labelOf(s.y.key), 'status']];
    for (let i = 0; i < rows.n; ++i) if (!s.shown || s.shown[i]) list.push([...rows.parameters.map(p => p.values[p.of[i]]), xs[i], ys[i], rows.statusOf(i)]);
    return list;
  };
  return figure(parent, {height: () => Math.max(280, Math.min(460, window.innerHeight * 0.5)), paint, find, csv, order, choose: found => openDetail(found.place), ...more});
}
const valueWords = (key, i) => key.startsWith('parameter:') ? String((p => p.values[p.of[i]])(rows.parameters.find(p => p.name === key.slice(10)))) : show(rows.values(key)[i], unitOf(key));

// Colours by a third quantity: groups for texts and few values, a scale for numbers, one colour for none.
function tintOf(key, n, shown) {
  if (!key) return {of: () => 0, colours: [colour('main')], legend: []};
  if (key === 'status') return {of: i => Math.min(rows.status[i], 7), colours: palette, legend: rows.statusNames.slice(0, 8).map((s, k) => [palette[k], s])};
  const p = key.startsWith('parameter:') ? rows.parameters.find(p => p.name === key.slice(10)) : null;
  if (p && p.values.length <= 8) return {of: i => p.of[i], colours: palette, legend: p.values.map((v, k) => [palette[k], String(v)])};
  const values = rows.values(key);
  let from = Infinity, to = -Infinity;
  for (let i = 0; i < n; ++i) if (!shown || shown[i]) { if (values[i] < from) from = values[i]; if (values[i] > to) to = values[i]; }
  const log = from > 0 && to / from > 20, f = log ? Math.log : x => x, scale = 31 / (f(to) - f(from) || 1);
  return {of: i => values[i] === values[i] ? Math.max(0, Math.min(31, Math.round((f(values[i]) - f(from)) * scale))) : 32, colours: [...shades, colour('line')],
    legend: [0, 0.25, 0.5, 0.75, 1].map(t => [shade(t), show(log ? from * (to / from) ** t : from + t * (to - from), unitOf(key), 3)])};
}

// Points that nothing shown beats in both; `toward`: -1 smaller is better.
function frontOf(xs, ys, good, n, toX, toY) {
  const front = [];  // from the best x to the best y; it is short, and each point costs a search in it
  for (let i = 0; i < n; ++i) {
    if (!good(i)) continue;
    let begin = 0, end = front.length;
    while (begin < end) { const k = (begin + end) >> 1; if (toX * (xs[front[k]] - xs[i]) >= 0) begin = k + 1; else end = k; }
    if (begin && toY * (ys[front[begin - 1]] - ys[i]) >= 0) continue;
    while (end < front.length && toY * (ys[front[end]] - ys[i]) <= 0) ++end;
    if (begin && xs[front[begin - 1]] === xs[i]) --begin;
    front.splice(begin, end - begin, i);
  }
  return front;
}
function hullOf(xs, ys, good, n) {
  const list = [];
  for (let i = 0; i < n; ++i) if (good(i)) list.push([xs[i], ys[i]]);
  list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = points => {
    const out = [];
    for (const p of points) {
      while (out.length > 1 && (out[out.length - 1][0] - out[out.length - 2][0]) * (p[1] - out[out.length - 2][1]) - (out[out.length - 1][1] - out[out.length - 2][1]) * (p[0] - out[out.length - 2][0]) <= 0) out.pop();
      out.push(p);
    }
    return out;
  };
  return [...half(list), ...half(list.reverse()).slice(1)];
}

// Lines over x: series [{x: list, y: list, stroke, steps, label, dash, dots}], spans [{from, to, fill}].
function lines(parent, spec, more = {}) {
  let last = null;
  const paint = (surface, width, height) => {
    const s = spec(), series = s.series.filter(one => one.x.length);
    if (!series.length) { surface.text(width / 2, height / 2, s.empty || 'nothing to show', {fill: colour('soft'), anchor: 'middle'}); last = null; return; }
    const [xa, xb] = s.x.range || rangeOf(series.map(one => [one.x, one.x.length]), s.x.log);
    const [ya, yb] = s.y.range || rangeOf(series.map(one => [one.y, one.y.length]), s.y.log);
    const {horizontal: h, vertical: v, box} = frame(surface, width, height, {x: {from: xa, to: xb, ...s.x}, y: {from: ya, to: yb, ...s.y}, bottom: s.x.title ? 44 : 26});
    for (const span of s.spans || []) {
      const a = Math.max(box.left, h.place(span.from)), b = Math.min(box.right, h.place(span.to));
      if (b > a) surface.rect(a, box.top, b - a, box.bottom - box.top, span.fill);
    }
    const spots = [];
    series.forEach((one, k) => {
      const points = [];
      for (let i = 0; i < one.x.length; ++i) {
        const at = [h.place(one.x[i]), v.place(one.y[i])];
        spots.push({x: at[0], y: at[1], text: (one.label ? one.label + ': ' : '') + (one.hint ? one.hint(i) : `${show(one.x[i], s.x.unit)}, ${show(one.y[i], s.y.unit)}`)});
        if (one.steps && points.length) points.push([at[0], points[points.length - 1][1]]);
        if (one.gap && one.gap(i)) { surface.line(points.splice(0), {stroke: one.stroke, width: 1.6, dash: one.dash}); }
        points.push(at);
        if (one.dots) surface.dot(at[0], at[1], one.x.length > 300 ? 1.3 : 2.5, one.stroke);
      }
      if (!one.only) surface.line(points, {stroke: one.stroke, width: 1.8, dash: one.dash});
      if (one.label && series.length > 1) { surface.dot(box.left + 12, box.top + 10 + 15 * k, 4, one.stroke); surface.text(box.left + 20, box.top + 14 + 15 * k, one.label, {fill: colour('soft'), size: 11}); }
    });
    last = spots;
  };
  const find = (x, y) => {
    let best = null, least = 400;
    for (const spot of last || []) { const d = (spot.x - x) ** 2 + ((spot.y - y) ** 2) / 4; if (d < least) { least = d; best = spot; } }
    return best;
  };
  const csv = () => { const s = spec(); return [['series', s.x.title || 'x', s.y.title || 'y'], ...s.series.flatMap(one => Array.from(one.x, (x, i) => [one.label || '', x, one.y[i]]))]; };
  return figure(parent, {height: 240, paint, find, csv, order: () => last || [], ...more});
}

// Parallel coordinates: an axis a name; brushes (dragged along an axis) keep what lies within all of them.
function parallel(parent, spec) {
  let axes = [], pressed = null;
  const paint = (surface, width, height) => {
    const s = spec(), step = (width - 90) / Math.max(1, s.keys.length - 1), top = 34, bottom = height - 14;
    axes = s.keys.map((key, k) => {
      const list = rows.values(key), names = categories(key);
      const [from, to] = rows.range(key);
      const log = !names && from > 0 && to / from > 20;
      return {key, list, x: 45 + k * step, ...axisOf({from, to, log, unit: unitOf(key), names, at: ticksAt(key)}, bottom, top)};
    });
    const tint = tintOf(s.colour, rows.n, s.shown), drawn = [];
    for (let i = 0; i < rows.n; ++i) if (s.shown[i] && rows.usable(i)) drawn.push(i);
    const stride = Math.max(1, Math.ceil(drawn.length / s.most));
    const byColour = new Map();
    for (let k = 0; k < drawn.length; k += stride) { const c = tint.of(drawn[k]); if (!byColour.has(c)) byColour.set(c, []); byColour.get(c).push(drawn[k]); }
    const faint = Math.max(0.08, Math.min(0.8, 60 / Math.max(1, drawn.length / stride)));
    for (const [c, list] of byColour) {
      if (surface.c) {  // one path a colour: thousands of lines in some milliseconds
        surface.c.globalAlpha = faint; surface.c.strokeStyle = tint.colours[c]; surface.c.lineWidth = 1; surface.c.beginPath();
        for (const i of list) axes.forEach((a, k) => { const y = a.place(a.list[i]); if (k) surface.c.lineTo(a.x, y); else surface.c.moveTo(a.x, y); });
        surface.c.stroke(); surface.c.globalAlpha = 1;
      } else for (const i of list) surface.line(axes.map(a => [a.x, a.place(a.list[i])]), {stroke: tint.colours[c], width: 0.4});
    }
    axes.forEach((a, k) => {
      surface.line([[a.x, top], [a.x, bottom]], {stroke: colour('soft')});
      surface.text(a.x, k % 2 ? 12 : 24, labelOf(a.key).slice(0, Math.max(6, step / 4)), {fill: colour('ink'), size: 11, anchor: 'middle', bold: true});
      for (const tick of a.ticks) surface.text(a.x + 4, a.place(tick) + 4, a.text(tick), {fill: colour('soft'), size: 10});
      const brush = s.brushes.get(a.key);
      if (brush) { const y = [a.place(brush[0]), a.place(brush[1])]; surface.rect(a.x - 6, Math.min(...y), 12, Math.max(3, Math.abs(y[0] - y[1])), colour('window')); surface.line([[a.x - 6, y[0]], [a.x + 6, y[0]]], {stroke: colour('accent'), width: 2}); surface.line([[a.x - 6, y[1]], [a.x + 6, y[1]]], {stroke: colour('accent'), width: 2}); }
    });
    if (stride > 1) surface.text(width - 4, height - 2, `every ${stride}th of ${drawn.length}`, {fill: colour('soft'), size: 10, anchor: 'end'});
  };
  const csv = () => { const s = spec(); return [s.keys.map(labelOf), ...Array.from({length: rows.n}, (_, i) => i).filter(i => s.shown[i]).map(i => s.keys.map(key => rows.values(key)[i]))]; };
  const own = figure(parent, {name: 'parallel-coordinates', height: 320, paint, csv, label: 'Parallel coordinates; drag along an axis to keep a range'});
  const at = event => { const box = own.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  own.canvas.addEventListener('pointerdown', event => { const [x, y] = at(event), axis = axes.find(a => Math.abs(a.x - x) < 14); if (axis) { pressed = {axis, y}; own.canvas.setPointerCapture(event.pointerId); } });
  own.canvas.addEventListener('pointerup', event => {
    if (!pressed) return;
    const [, y] = at(event), {axis} = pressed, s = spec();
    if (Math.abs(y - pressed.y) < 4) s.brushes.delete(axis.key);
    else s.brushes.set(axis.key, [axis.back(y), axis.back(pressed.y)].sort((a, b) => a - b));
    pressed = null;
    s.brushed();
  });
  return own;
}

// A map of two parameters: each cell holds the best, the median or the count of a quantity over what is shown.
function cellsOf(px, py, key, how, shown) {
  const list = rows.values(key), cells = Array.from({length: px.values.length * py.values.length}, () => []);
  for (let i = 0; i < rows.n; ++i) if ((!shown || shown[i]) && rows.usable(i) && list[i] === list[i]) cells[py.of[i] * px.values.length + px.of[i]].push(i);
  const better = direction(key) > 0 ? (a, b) => list[b] - list[a] : (a, b) => list[a] - list[b];
  return cells.map(one => {
    if (!one.length) return {value: NaN, count: 0};
    one.sort(better);
    const place = how === 'median' ? one[Math.floor(one.length / 2)] : one[0];
    return {value: how === 'count' ? one.length : list[place], place, count: one.length};
  });
}
function heat(parent, spec) {
  let last = null;
  const orderOf = p => p.values.map((v, k) => k).sort((a, b) => typeof p.values[a] === 'number' && typeof p.values[b] === 'number' ? p.values[a] - p.values[b] : a - b);
  const paint = (surface, width, height) => {
    const s = spec(), cells = cellsOf(s.px, s.py, s.key, s.how, s.shown), ox = orderOf(s.px), oy = orderOf(s.py);
    const left = 80, bottom = height - 44, w = (width - left - 20) / ox.length, h = (bottom - 14) / oy.length;
    let from = Infinity, to = -Infinity;
    for (const c of cells) { if (c.value < from) from = c.value; if (c.value > to) to = c.value; }
    const turned = s.how !== 'count' && direction(s.key) < 0, log = from > 0 && to / from > 20, f = log ? Math.log : x => x;
    const every = (n, room, each) => Math.max(1, Math.ceil(n * each / room));
    ox.forEach((vx, x) => oy.forEach((vy, y) => {
      const cell = cells[vy * ox.length + vx], t = to > from ? (f(cell.value) - f(from)) / (f(to) - f(from)) : 0.5;
      const bright = turned ? 1 - t : t;
      surface.rect(left + x * w, bottom - (y + 1) * h, w - 1, h - 1, cell.count ? shade(bright) : colour('line'));
      const text = cell.count ? show(cell.value, s.how === 'count' ? '' : unitOf(s.key), 3) : '';
      if (w > 6.4 * text.length + 4 && h > 14) surface.text(left + (x + 0.5) * w, bottom - (y + 0.5) * h + 4, text, {fill: bright > 0.55 ? '#111' : '#fff', size: 11, anchor: 'middle'});
    }));
    ox.forEach((v, x) => { if (x % every(ox.length, width - left, 42) === 0) surface.text(left + (x + 0.5) * w, bottom + 15, String(s.px.values[v]), {fill: colour('soft'), size: 11, anchor: 'middle'}); });
    oy.forEach((v, y) => { if (y % every(oy.length, bottom, 16) === 0) surface.text(left - 6, bottom - (y + 0.5) * h + 4, String(s.py.values[v]).slice(0, 9), {fill: colour('soft'), size: 11, anchor: 'end'}); });
    surface.text((left + width) / 2, height - 8, s.px.name, {fill: colour('soft'), anchor: 'middle'});
    surface.text(14, bottom / 2, s.py.name, {fill: colour('soft'), anchor: 'middle', turn: -Math.PI / 2});
    last = {s, cells, ox, oy, left, bottom, w, h};
  };
  const find = (x, y) => {
    if (!last) return null;
    const {s, cells, ox, oy, left, bottom, w, h} = last, cx = Math.floor((x - left) / w), cy = Math.floor((bottom - y) / h);
    if (!(cx >= 0 && cx < ox.length && cy >= 0 && cy < oy.length)) return null;
    const cell = cells[oy[cy] * ox.length + ox[cx]];
    const text = `${s.px.name} ${s.px.values[ox[cx]]}, ${s.py.name} ${s.py.values[oy[cy]]}: `;
    return {text: text + (cell.count ? `${s.how} ${show(cell.value, s.how === 'count' ? '' : unitOf(s.key))} of ${cell.count}\n${rows.configuration(cell.place)}` : 'nothing that worked'), place: cell.place, x, y};
  };
  const csv = () => { const s = spec(), cells = cellsOf(s.px, s.py, s.key, s.how, s.shown); return [[s.px.name, s.py.name, `${s.how} ${labelOf(s.key)}`, 'configurations'], ...cells.map((c, k) => [s.px.values[k % s.px.values.length], s.py.values[Math.floor(k / s.px.values.length)], c.value, c.count])]; };
  return figure(parent, {name: 'map', height: 340, paint, find, csv, choose: found => found.place !== undefined && openDetail(found.place), label: 'Map of two parameters'});
}
