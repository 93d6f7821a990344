// Figures: drawn by the same few strokes on a canvas and as SVG. Colours of Okabe and Ito distinguish groups for all eyes;
// the scale for numbers runs from dark blue to yellow (cividis).
const palette = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8c6bb1', '#999999'];
const cividis = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 186, 101], [254, 232, 56]];
function shade(t) {
  const x = Math.max(0, Math.min(1, t)) * (cividis.length - 1), k = Math.min(Math.floor(x), cividis.length - 2), f = x - k;
  return 'rgb(' + cividis[k].map((a, i) => Math.round(a + f * (cividis[k + 1][i] - a))).join(',') + ')';
}
const shades = Array.from({length: 32}, (_, k) => shade(k / 31));

class CanvasSurface {
  constructor(context) { this.c = context; }
  line(points, {stroke, width = 1, dash = []}) {
    if (points.length < 2) return;
    this.c.beginPath();
    points.forEach(([x, y], k) => k ? this.c.lineTo(x, y) : this.c.moveTo(x, y));
    this.c.strokeStyle = stroke; this.c.lineWidth = width; this.c.setLineDash(dash); this.c.stroke(); this.c.setLineDash([]);
  }
  area(points, fill) {
    this.c.beginPath();
    points.forEach(([x, y], k) => k ? this.c.lineTo(x, y) : this.c.moveTo(x, y));
    this.c.fillStyle = fill; this.c.fill();
  }
  rect(x, y, w, h, fill) { this.c.fillStyle = fill; this.c.fillRect(x, y, w, h); }
  dot(x, y, r, fill) {
    this.c.fillStyle = fill;
    if (r < 2) return this.c.fillRect(x - r, y - r, 2 * r, 2 * r);
    this.c.beginPath(); this.c.arc(x, y, r, 0, 7); this.c.fill();
  }
  // Very many dots: written into the picture's memory, some milliseconds for a hundred thousand.
  cloud(px, py, n, of, colours, r) {
    const {width, height} = this.c.canvas, ratio = this.c.getTransform().a, image = this.c.getImageData(0, 0, width, height);
    const pixels = new Uint32Array(image.data.buffer), s = Math.max(1, Math.round(2 * r * ratio));
    const inks = colours.map(ink => {
      const [red, green, blue] = ink.startsWith('#') ? [1, 3, 5].map(k => parseInt(ink.slice(k, k + 2), 16)) : ink.match(/\d+/g).map(Number);
      return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
    });
    for (let i = 0; i < n; ++i) {
      if (px[i] !== px[i]) continue;
      const x = Math.round((px[i] - r) * ratio), y = Math.round((py[i] - r) * ratio), ink = inks[of(i)];
      for (let b = Math.max(0, y); b < y + s && b < height; ++b) for (let a = Math.max(0, x); a < x + s && a < width; ++a) pixels[b * width + a] = ink;
    }
    this.c.putImageData(image, 0, 0);
  }
  text(x, y, string, {fill, size = 12, anchor = 'start', turn = 0, bold = false}) {
    this.c.save(); this.c.translate(x, y); this.c.rotate(turn);
    this.c.font = `${bold ? 600 : 400} ${size}px system-ui, sans-serif`; this.c.fillStyle = fill;
    this.c.textAlign = anchor === 'middle' ? 'center' : anchor;
    if (bold) { this.c.strokeStyle = colour('paper'); this.c.lineWidth = 4; this.c.lineJoin = 'round'; this.c.strokeText(string, 0, 0); }  // legible on dots
    this.c.fillText(string, 0, 0); this.c.restore();
  }
}
const escaped = string => String(string).replace(/[&<>"']/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;'}[c]));
class SvgSurface {
  constructor(width, height) { this.width = width; this.height = height; this.parts = []; }
  put(text) { this.parts.push(text); }
  n(x) { return Number(x.toFixed(2)); }
  line(points, {stroke, width = 1, dash = []}) {
    this.put(`<polyline fill="none" stroke="${stroke}" stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(' ')}"` : ''} points="${points.map(([x, y]) => this.n(x) + ',' + this.n(y)).join(' ')}"/>`);
  }
  area(points, fill) { this.put(`<polygon fill="${fill}" points="${points.map(([x, y]) => this.n(x) + ',' + this.n(y)).join(' ')}"/>`); }
  rect(x, y, w, h, fill) { this.put(`<rect x="${this.n(x)}" y="${this.n(y)}" width="${this.n(w)}" height="${this.n(h)}" fill="${fill}"/>`); }
  dot(x, y, r, fill) { this.put(`<circle cx="${this.n(x)}" cy="${this.n(y)}" r="${r}" fill="${fill}"/>`); }
  text(x, y, string, {fill, size = 12, anchor = 'start', turn = 0, bold = false}) {
    this.put(`<text x="${this.n(x)}" y="${this.n(y)}" fill="${fill}" font-size="${size}" text-anchor="${anchor}"${bold ? ` font-weight="600" paint-order="stroke" stroke="${colour('paper')}" stroke-width="4" stroke-linejoin="round"` : ''}` +
      `${turn ? ` transform="rotate(${turn * 180 / Math.PI} ${this.n(x)} ${this.n(y)})"` : ''}>${escaped(string)}</text>`);
  }
  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" font-family="system-ui, sans-serif">` +
      `<rect width="100%" height="100%" fill="${colour('paper')}"/>${this.parts.join('\n')}</svg>\n`;
  }
}

function save(name, type, text) {
  const link = element('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const csvCell = value => {
  const text = value === null || value === undefined || Number.isNaN(value) ? '' : String(value);
  return /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};
const csvOf = lists => lists.map(list => list.map(csvCell).join(',')).join('\n') + '\n';

// A figure: `paint(surface, width, height)` draws it; `find(x, y)` says what lies there: {text, x, y, place}; `csv()` gives
// lists of cells; `choose(found)` is called on a click and on Enter. It is drawn anew when its size or the scheme changes.
const figures = [];
const tip = element('div', {class: 'tip', hidden: true});
document.body.append(tip);
function figure(parent, {name, height = 300, label, paint, find, csv, choose, order}) {
  const canvas = element('canvas', {role: 'img', 'aria-label': label || name, tabindex: find ? 0 : null});
  const own = {canvas, drawn: 0};
  const sizeNow = () => [Math.max(200, canvas.parentNode.clientWidth), typeof height === 'function' ? height() : height];
  own.draw = () => {
    const [w, h] = sizeNow(), ratio = window.devicePixelRatio || 1, begun = performance.now();
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); canvas.style.height = h + 'px';
    const context = canvas.getContext('2d', {willReadFrequently: true});
    context.scale(ratio, ratio);
    context.clearRect(0, 0, w, h);
    paint(new CanvasSurface(context), w, h);
    own.drawn = performance.now() - begun;
  };
  own.svg = () => { const [w, h] = sizeNow(), surface = new SvgSurface(w, h); paint(surface, w, h); return surface.toString(); };
  own.csv = () => csvOf(csv());
  const tools = element('div', {class: 'tools'}, element('button', {title: 'Save this figure as SVG', onclick: () => save(name + '.svg', 'image/svg+xml', own.svg())}, 'SVG'));
  if (csv) tools.append(element('button', {title: 'Save its numbers as CSV', onclick: () => save(name + '.csv', 'text/csv', own.csv())}, 'CSV'));
  parent.append(element('div', {class: 'figure'}, canvas, tools));
  if (find) {
    const showHint = (found, x, y) => {
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = found.text;
      tip.style.left = Math.min(x + 14, window.innerWidth - Math.min(420, window.innerWidth * 0.9) - 8) + 'px';
      tip.style.top = Math.min(y + 14, window.innerHeight - 90) + 'px';
    };
    const at = event => { const box = canvas.getBoundingClientRect(); return find(event.clientX - box.left, event.clientY - box.top); };
    canvas.addEventListener('pointermove', event => showHint(at(event), event.clientX, event.clientY));
    canvas.addEventListener('pointerleave', () => showHint(null));
    canvas.addEventListener('blur', () => showHint(null));
    if (choose) canvas.addEventListener('click', event => { const found = at(event); if (found) choose(found); });
    let k = -1;
    if (order) canvas.addEventListener('keydown', event => {
      const list = order(), step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (step && list.length) {
        k = (k + step + list.length) % list.length;
        const box = canvas.getBoundingClientRect();
        showHint(list[k], box.left + list[k].x, box.top + list[k].y);
        event.preventDefault();
      } else if (event.key === 'Enter' && list[k] && choose) choose(list[k]);
    });
  }
  figures.push(own);
  canvas.style.height = (typeof height === 'function' ? height() : height) + 'px';
  drawOrWait(own);
  return own;
}
// Only what is in sight is drawn at once: an interaction waits for no figure that is not visible.
function drawOrWait(own) {
  const box = own.canvas.getBoundingClientRect();
  own.stale = box.bottom < -100 || box.top > window.innerHeight + 100;
  if (!own.stale) own.draw();
}
let waiting = false;
const soon = what => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; what(); }); } };
const drawAll = () => { for (const one of figures) drawOrWait(one); };
const drawSeen = () => { for (const one of figures) if (one.stale) drawOrWait(one); };
window.addEventListener('resize', () => soon(drawAll));
window.addEventListener('scroll', () => soon(drawSeen), {passive: true});
window.addEventListener('beforeprint', () => { for (const one of figures) one.draw(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);

// One axis: numbers (linear or logarithmic) or categories (their names by number).
function ticksOf(from, to, log, wanted) {
  const list = [];
  if (log) {
    const steps = Math.log10(to / from) > 4 ? [1] : [1, 2, 3, 5];
    for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); ++e)
      for (const m of steps) { const v = m * 10 ** e; if (v >= from * 0.999 && v <= to * 1.001) list.push(v); }
    if (list.length > 1) return list;
    list.length = 0;
  }
  const raw = (to - from) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(raw)), unit = raw / power;
  const step = (unit > 5 ? 10 : unit > 2 ? 5 : unit > 1 ? 2 : 1) * power;
  for (let v = Math.ceil(from / step) * step; v <= to + step * 1e-9; v += step) list.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return list;
}
function axisOf({from, to, log, unit = '', names, at, whole}, begin, end) {
  if (!(to > from)) { const room = from !== 0 && isFinite(from) ? Math.abs(from) * 0.05 : 1; from = (isFinite(from) ? from : 0) - room; to = from + 2 * room; log = log && from > 0; }
  const f = log ? Math.log : x => x, a = f(from), scale = (end - begin) / (f(to) - a);
  const place = v => begin + (f(v) - a) * scale;
  const text = names ? v => names[Math.round(v)] ?? '' : v => show(v, unit, 3);
  const ticks = names ? names.map((_, k) => k).filter(k => k >= from && k <= to && k % Math.ceil(names.length / Math.max(2, Math.abs(end - begin) / 60)) === 0) :
    (at ? at.filter(v => v >= from && v <= to) : ticksOf(from, to, log, Math.abs(end - begin) / 70)).filter(v => !whole || Number.isInteger(v));
  return {place, back: p => { const y = a + (p - begin) / scale; return log ? Math.exp(y) : y; }, ticks, text};
}
function rangeOf(lists, log) {
  let from = Infinity, to = -Infinity;
  for (const [list, n] of lists) for (let i = 0; i < n; ++i) { const v = list[i]; if (v < from && (!log || v > 0)) from = v; if (v > to && v < Infinity) to = v; }
  if (!(to >= from)) return [0, 1];
  if (log) { const room = (to / from) ** 0.04; return [from / room, to * room]; }
  const room = 0.04 * (to - from);
  return [from - room, to + room];
}

// Axes, then what `content` draws inside; returns the two axes.
function frame(surface, width, height, {x, y, left = 70, bottom = 44, top = 14, right = 14}) {
  const soft = colour('soft'), line = colour('line');
  const horizontal = axisOf(x, left, width - right), vertical = axisOf(y, height - bottom, top);
  let free = -Infinity;
  for (const tick of horizontal.ticks) {
    const at = horizontal.place(tick), string = horizontal.text(tick);
    surface.line([[at, top], [at, height - bottom]], {stroke: line});
    if (at - 3.4 * string.length < free) continue;
    surface.text(at, height - bottom + 16, string, {fill: soft, size: 11, anchor: 'middle'});
    free = at + 3.4 * string.length + 6;
  }
  free = Infinity;
  for (const tick of vertical.ticks) {
    const at = vertical.place(tick);
    surface.line([[left, at], [width - right, at]], {stroke: line});
    if (at > free) continue;
    surface.text(left - 6, at + 4, vertical.text(tick), {fill: soft, size: 11, anchor: 'end'});
    free = at - 14;
  }
  surface.text((left + width - right) / 2, height - 8, x.title || '', {fill: soft, anchor: 'middle'});
  surface.text(14, (top + height - bottom) / 2, y.title || '', {fill: soft, anchor: 'middle', turn: -Math.PI / 2});
  return {horizontal, vertical, box: {left, top, right: width - right, bottom: height - bottom}};
}
