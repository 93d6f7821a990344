'use strict';
// The page's data and its texts. Every number comes from the program; what is worked out here are pictures of them.
const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);
const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
};
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

const prefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];
const scaled = ['s', 'J', 'W', 'Hz'];
const digits = (x, n = 4) => Number(x.toPrecision(n)).toString();
function show(value, unit = '', n = 4) {
  if (value === null || value === undefined || !isFinite(value)) return '–';
  if (!scaled.includes(unit) || value === 0)
    return (Number.isInteger(value) ? value : digits(value, n)) + (unit ? ' ' + unit : '');
  const [factor, prefix] = prefixes.find(([f]) => Math.abs(value) >= f * 0.9995) || prefixes[prefixes.length - 1];
  return digits(value / factor, n) + ' ' + prefix + unit;
}
const percent = share => digits(100 * share, 3) + ' %';
function duration(s) {
  if (s === null || s === undefined || !isFinite(s)) return '–';
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 60) return Math.round(s) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + String(Math.floor(s % 60)).padStart(2, '0') + ' s';
  return Math.floor(s / 3600) + ' h ' + String(Math.floor(s / 60 % 60)).padStart(2, '0') + ' min';
}
const clock = t => new Date(1000 * t).toLocaleTimeString();

// What is known of the session that is shown. `head`: the document; rows: columns as typed arrays, one place a configuration.
const model = {id: null, head: null, findings: null, live: null, run: null, sessions: [], log: [], lost: false, loading: null};
const rows = {
  n: 0, capacity: 0, version: 0, place: new Map(), ids: [], parameters: [], columns: new Map(), halfWidths: new Map(),
  statusNames: [], status: new Uint8Array(0), confirmed: new Uint8Array(0),
  clear() {
    Object.assign(this, {n: 0, capacity: 0, place: new Map(), ids: [], parameters: [], columns: new Map(), halfWidths: new Map(),
      statusNames: [], status: new Uint8Array(0), confirmed: new Uint8Array(0), version: this.version + 1});
  },
  grow(n) {
    if (n <= this.capacity) return;
    this.capacity = Math.max(1024, 2 * this.capacity, n);
    const larger = old => { const one = new old.constructor(this.capacity); if (one instanceof Float64Array) one.fill(NaN); one.set(old); return one; };
    this.status = larger(this.status); this.confirmed = larger(this.confirmed);
    for (const p of this.parameters) p.of = larger(p.of);
    for (const list of [this.columns, this.halfWidths]) for (const [name, old] of list) list.set(name, larger(old));
  },
  column(list, name) {
    if (!list.has(name)) list.set(name, new Float64Array(this.capacity).fill(NaN));
    return list.get(name);
  },
  // Takes columns of the program in (docs/formats.md).
  take(results) {
    const ids = results.rows, n = ids.length;
    if (!n) return;
    this.grow(this.n + n);
    const at = new Uint32Array(n);
    for (let k = 0; k < n; ++k) {
      let place = this.place.get(ids[k]);
      if (place === undefined) { place = this.n++; this.place.set(ids[k], place); this.ids.push(ids[k]); }
      at[k] = place;
    }
    results.parameters.forEach((p, i) => {
      if (!this.parameters[i]) this.parameters[i] = {name: p.name, of: new Uint32Array(this.capacity)};
      const mine = this.parameters[i];
      mine.values = p.values;
      for (let k = 0; k < n; ++k) mine.of[at[k]] = p.of[k];
    });
    const number = results.status.names.map(name => {
      if (!this.statusNames.includes(name)) this.statusNames.push(name);
      return this.statusNames.indexOf(name);
    });
    for (let k = 0; k < n; ++k) { this.status[at[k]] = number[results.status.of[k]]; this.confirmed[at[k]] = results.confirmed[k]; }
    const fill = (list, name, values) => {
      const column = this.column(list, name);
      for (let k = 0; k < n; ++k) column[at[k]] = values[k] === null ? NaN : values[k];
    };
    for (const [name, values] of Object.entries(results.columns)) fill(this.columns, name, values);
    for (const [name, values] of Object.entries(results.half_widths)) fill(this.halfWidths, name, values);
    fill(this.columns, '\u0000objective', results.objective);
    if (results.seconds) fill(this.columns, '\u0000seconds', results.seconds);
    this.ranks = null;
    ++this.version;
  },
  configuration(i) { return this.parameters.map(p => p.name + '=' + p.values[p.of[i]]).join(', '); },
  statusOf(i) { return this.statusNames[this.status[i]]; },
  usable(i) { const s = this.statusNames[this.status[i]]; return s === 'ok' || s === 'not_converged'; },
  // Least and largest of values(), kept until rows come.
  range(key) {
    if (this.rangesOf !== this.version) { this.rangesOf = this.version; this.ranges = new Map(); }
    if (!this.ranges.has(key)) {
      const list = this.values(key);
      let from = Infinity, to = -Infinity;
      for (let i = 0; i < this.n; ++i) { const v = list[i]; if (v < from) from = v; if (v > to) to = v; }
      this.ranges.set(key, [from, to]);
    }
    return this.ranges.get(key);
  },
  // Numbers of a quantity, a metric or a parameter ("parameter:NAME"), by place; texts have their place in order of value.
  values(key) {
    if (!key.startsWith('parameter:')) return this.columns.get(key) || new Float64Array(this.n).fill(NaN);
    const p = this.parameters.find(p => p.name === key.slice(10));
    const kept = this.ranks || (this.ranks = new Map());
    if (kept.has(key)) return kept.get(key);
    const number = p.values.map((v, k) => typeof v === 'number' ? v : typeof v === 'boolean' ? Number(v) : k);
    const list = new Float64Array(this.n);
    for (let i = 0; i < this.n; ++i) list[i] = number[p.of[i]];
    kept.set(key, list);
    return list;
  },
};

// Names to choose from, as [key, label].
const objectiveName = () => model.head ? model.head.objective.name : 'objective';
function labelOf(key) {
  if (key === '\u0000objective') return objectiveName();
  if (key === '\u0000seconds') return 'time since the beginning';
  return key.startsWith('parameter:') ? key.slice(10) : key;
}
function unitOf(key) {
  if (key === '\u0000seconds') return 's';
  if (!model.head) return '';
  return key === '\u0000objective' ? model.head.objective.unit : model.head.units[key] || '';
}
const axisTitle = key => labelOf(key) + (unitOf(key) && !scaled.includes(unitOf(key)) ? ` (${unitOf(key)})` : '');
// -1: smaller is better, 1: larger, 0: neither.
function direction(key) {
  if (!model.head) return 0;
  if (key === '\u0000objective') return model.head.objective.direction === 'max' ? 1 : -1;
  return model.head.better[key] || 0;
}
function choices({parameters = true} = {}) {
  const list = [['\u0000objective', objectiveName() + ' (objective)']];
  for (const name of rows.columns.keys()) if (!name.startsWith('\u0000')) list.push([name, name]);
  if (rows.columns.has('\u0000seconds')) list.push(['\u0000seconds', labelOf('\u0000seconds')]);
  if (parameters) for (const p of varying()) list.push(['parameter:' + p.name, p.name]);
  return list;
}
const varying = () => rows.parameters.filter(p => p.values.length > 1);
const selectOf = (label, list, value, change) => {
  const select = element('select', {onchange: () => change(select.value)},
    ...list.map(([key, label]) => element('option', {value: key, selected: key === value}, label)));
  return element('label', {}, label, select);
};

// What has not converged has a wider interval than was asked for.
const sure = row => row.status === 'not_converged' ? '~' : '';
const describe = configuration => Object.entries(configuration).map(([name, value]) => `${name}=${value}`).join(', ');
const valueOf = (row, name) => (row.quantities[name] || {}).value ?? row.metrics[name];
const interval = row => row.half_width > 0 ? ' ± ' + show(row.half_width, model.head.objective.unit, 2) : '';

function section(parent, title, note) {
  const node = element('section', {}, element('h2', {}, title));
  if (note) node.append(element('p', {class: 'note'}, note));
  parent.append(node);
  return node;
}
function table(parent, headers, list, numeric = []) {
  const head = element('tr', {}, ...headers.map((h, i) => element('th', numeric.includes(i) ? {class: 'number'} : {}, h)));
  const body = list.map(r => element('tr', {}, ...r.map((cell, i) =>
      element('td', numeric.includes(i) ? {class: 'number'} : {}, cell instanceof Node ? cell : String(cell)))));
  parent.append(element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...body))));
}

// Views: each has draw(main) which fills it once, and update(what) when something has come.
const views = [];
let current = null;
function openView(name, focus) {
  const view = views.find(v => v.name === name) || views[0];
  current = view;
  for (const tab of byId('tabs').children) {
    tab.setAttribute('aria-selected', tab.dataset.view === view.name);
    tab.tabIndex = tab.dataset.view === view.name ? 0 : -1;
    if (focus && tab.dataset.view === view.name) tab.focus();
  }
  byId('main').replaceChildren();
  figures.length = 0;
  view.draw(byId('main'));
  if (location.hash.slice(1) !== view.name) history.replaceState(null, '', location.pathname + location.search + '#' + view.name);
}
function makeTabs() {
  views.forEach((view, k) => byId('tabs').append(element('button', {role: 'tab', 'data-view': view.name, title: `key ${k + 1}`,
    onclick: () => openView(view.name)}, view.title)));
  byId('tabs').addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (step) openView(views[(views.indexOf(current) + step + views.length) % views.length].name, true);
  });
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const view = views[Number(event.key) - 1];
    if (view) openView(view.name, true);
  });
}
const changed = what => { if (current && current.update) current.update(what); };

function tellHead() {
  const head = model.head;
  if (!head) return;
  byId('title').textContent = [head.problem + ' on ' + head.device_name, ...Object.entries(head.differing_constants || {}).map(([k, v]) => `${k}=${v}`)].join(', ');
  document.title = 'ergotune: ' + head.problem;
  byId('subtitle').textContent = `${head.objective.direction === 'max' ? 'Largest' : 'Least'} ${head.objective.name}; ` +
    `${head.rows} configurations evaluated${head.space ? ` of ${head.space}` : ''}, ${head.failures.reduce((n, f) => n + f.count, 0)} failed` +
    `${head.statuses.not_converged ? `, ${head.statuses.not_converged} not converged (marked ~)` : ''}; ${head.created}`;
  const label = byId('provenance');
  label.hidden = head.provenance === 'measured';
  label.textContent = head.provenance === 'replayed' ? 'replayed values: recorded earlier, nothing was measured for this page' :
    head.provenance + ' values: nothing on this page was measured on the device it names';
  byId('footer').textContent = `Written by ergotune ${head.ergotune}.`;
}
