// Table: every configuration, sorted by any column; only what is in sight is in the document. And all about one of them.
const tableView = {name: 'table', title: 'Table', sort: ['\u0000objective', 0], all: false,
  draw(main) {
    const part = section(main, 'Configurations', 'Click a heading to sort, a row for all about it; ~ has not converged, ✓ was confirmed.');
    const all = element('input', {type: 'checkbox', checked: this.all, onchange: () => { this.all = all.checked; this.order = null; this.fill(); }});
    part.append(element('div', {class: 'controls'}, element('label', {}, all, 'failures too'),
      element('button', {onclick: () => save('configurations.csv', 'text/csv', this.csv())}, 'Save as CSV'), this.counted = element('span', {class: 'note'})));
    this.box = element('div', {class: 'virtual', tabindex: 0, 'aria-label': 'Configurations'});
    this.box.addEventListener('scroll', () => this.paint());
    this.box.addEventListener('keydown', event => {
      const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 18, PageUp: -18}[event.key];
      if (step) { this.chosen = Math.max(0, Math.min(this.order.length - 1, (this.chosen ?? -1) + step)); this.box.scrollTop = Math.max(0, (this.chosen - 9) * 27); this.paint(); event.preventDefault(); }
      if (event.key === 'Enter' && this.chosen !== undefined) openDetail(this.order[this.chosen]);
    });
    part.append(this.box);
    this.order = null;
    this.fill();
  },
  columns() {
    const names = [...rows.columns.keys()].filter(n => !n.startsWith('\u0000') && n !== objectiveName());
    return ['\u0000objective', ...varying().map(p => 'parameter:' + p.name), ...names];
  },
  sorted() {
    const [key, flip] = this.sort, of = rows.values(key), shown = keep.now(), order = [], none = [];  // without a value: last
    for (let i = 0; i < rows.n; ++i) if (this.all || shown[i]) (of[i] === of[i] ? order : none).push(i);
    const falling = direction(key) > 0 ? !flip : flip;
    return order.sort(falling ? (a, b) => of[b] - of[a] : (a, b) => of[a] - of[b]).concat(none);
  },
  fill() {
    if (!rows.n) { this.counted.textContent = 'nothing has been measured yet'; this.box.replaceChildren(); return; }
    this.order = this.sorted();
    this.counted.textContent = `${this.order.length} of ${rows.n} configurations` + (model.head && model.head.shown < model.head.rows && data.saved ? ` (a sample of ${model.head.rows}, the best among them)` : '');
    const head = element('tr', {}, element('th', {}, ''), ...this.columns().map(key => element('th', {class: 'number', 'aria-sort': this.sort[0] === key ? (this.sort[1] ? 'descending' : 'ascending') : 'none'},
      element('button', {onclick: () => { this.sort = [key, this.sort[0] === key ? 1 - this.sort[1] : 0]; this.fill(); }}, labelOf(key) + (this.sort[0] === key ? (this.sort[1] ? ' ▾' : ' ▴') : '')))), ...(this.all ? [element('th', {}, 'status')] : []));
    this.body = element('tbody');
    this.box.replaceChildren(element('table', {}, element('thead', {}, head), this.body));
    this.paint();
  },
  paint() {
    const high = 27, keys = this.columns(), from = Math.max(0, Math.floor(this.box.scrollTop / high) - 10), to = Math.min(this.order.length, from + Math.ceil(this.box.clientHeight / high) + 24);
    const room = (n) => element('tr', {'aria-hidden': 'true'}, (cell => { cell.style.height = n * high + 'px'; cell.style.padding = 0; return cell; })(element('td', {colspan: keys.length + 2})));
    const line = k => {
      const i = this.order[k];
      return element('tr', {class: k === this.chosen ? 'chosen' : '', onclick: () => { this.chosen = k; openDetail(i); }},
        element('td', {class: 'number'}, k + 1 + (rows.confirmed[i] ? ' ✓' : '')),
        ...keys.map(key => element('td', {class: 'number'}, (key === '\u0000objective' && rows.statusOf(i) === 'not_converged' ? '~' : '') + valueWords(key, i))),
        ...(this.all ? [element('td', {}, rows.statusOf(i))] : []));
    };
    const lines = [];
    for (let k = from; k < to; ++k) lines.push(line(k));
    this.body.replaceChildren(...(from ? [room(from)] : []), ...lines, ...(to < this.order.length ? [room(this.order.length - to)] : []));
  },
  csv() {
    const keys = this.columns(), value = (key, i) => key.startsWith('parameter:') ? (p => p.values[p.of[i]])(rows.parameters.find(p => p.name === key.slice(10))) : rows.values(key)[i];
    return csvOf([[...keys.map(labelOf), 'status'], ...this.sorted().map(i => [...keys.map(key => value(key, i)), rows.statusOf(i)])]);
  },
  update(what) {
    if (what !== 'rows' || this.late) return;
    this.late = setTimeout(() => { this.late = null; if (current === this) { const at = this.box.scrollTop; this.fill(); this.box.scrollTop = at; } }, 1000);
  },
};
views.push(tableView);

const quantityRows = m => [...Object.entries(m.quantities || {}).map(([name, q]) =>
  [name, show(q.value, unitOf(name), 6), q.half_width > 0 ? '± ' + show(q.half_width, unitOf(name), 2) : '', q.n, [q.method, q.sensor, q.provenance === 'measured' ? '' : q.provenance].filter(Boolean).join(', ')]),
  ...Object.entries(m.metrics || {}).map(([name, v]) => [name, show(v, unitOf(name), 6), '', '', 'metric'])];
function detailOf(box, i, all) {
  const paragraph = text => element('p', {}, text);
  box.append(element('code', {}, rows.configuration(i)));
  if (!all) {  // a saved page: what its columns hold
    table(box, ['', '', ''], [...rows.columns.keys()].filter(n => !n.startsWith('\u0000') && rows.values(n)[i] === rows.values(n)[i]).map(n =>
      [n, show(rows.values(n)[i], unitOf(n), 6), (h => h > 0 ? '± ' + show(h, unitOf(n), 2) : '')((rows.halfWidths.get(n) || [])[i])]), [1]);
    return;
  }
  box.append(paragraph(all.status + (all.confirmation_repeats ? `, confirmed in ${all.confirmation_repeats} rounds` : '')));
  if (all.message) box.append(element('pre', {}, all.message));
  for (const warning of all.warnings || []) box.append(paragraph('note: ' + warning));
  table(box, ['quantity', 'value', '95 %', 'n', 'how'], quantityRows(all), [1, 3]);
  for (const k of all.macros) {
    box.append(element('h3', {}, 'Macros' + (k.kernel ? ' of ' + k.kernel : '')), element('code', {}, Object.entries(k.macros).map(([n, v]) => `-D${n}=${v}`).join(' ') || 'none'));
  }
  if (all.command) box.append(element('h3', {}, 'Measure it again'), element('pre', {}, all.command));
  if (all.trace) { box.append(element('h3', {}, 'Power trace')); lines(box, () => ({x: {title: 'time', unit: 's'}, y: {title: 'power', unit: 'W'}, series: all.trace.power.map((p, k) => ({x: p.time, y: p.value, stroke: palette[k], label: p.name}))}), {name: 'power-trace'}); }
  if (all.measurements.length > 1 || all.measurements[0]?.times.length > 1) {
    box.append(element('h3', {}, 'Measurements'));
    table(box, ['row', 'kind', 'status', 'when', objectiveName(), 'samples'], all.measurements.map(m => [m.row, m.kind + (m.stage ? ' ' + m.stage : ''), m.status, clock(m.finished_at),
      show(valueOf(m, objectiveName()), model.head.objective.unit), m.times.length]), [0, 4, 5]);
    const timed = all.measurements.filter(m => m.times.length > 1);
    if (timed.length) lines(box, () => ({x: {title: 'sample'}, y: {title: 'time', unit: 's'}, series: timed.slice(0, 8).map((m, k) => ({x: m.times.map((_, j) => j + 1), y: m.times, stroke: palette[k], label: `row ${m.row}`, dots: true, only: true}))}), {name: 'samples', height: 180, label: 'Times of single samples'});
  }
}
async function openDetail(i) {
  if (i === undefined || i === null) return;
  const dialog = byId('detail');
  const close = () => { dialog.close(); };
  const box = element('div');
  dialog.replaceChildren(element('div', {class: 'line'}, element('h2', {}, 'Configuration'), element('button', {onclick: close, autofocus: true}, 'Close')), box);
  if (!dialog.open) dialog.showModal();
  const kept = figures.length;
  dialog.onclose = () => { figures.length = Math.min(figures.length, kept); tip.hidden = true; };
  dialog.onclick = event => { if (event.target === dialog) close(); };
  if (data.saved) return detailOf(box, i, null);
  try { detailOf(box, i, await get(path(model.id, '/configuration/' + rows.ids[i]))); }
  catch (error) { box.append(element('p', {}, error.message)); }
}
