// Explore: any two against each other, parallel coordinates, maps of two parameters; what is kept by brushes and filters is
// kept everywhere.
const keep = {brushes: new Map(), values: new Map(), from: null, version: -1, shown: null,
  // 1 for what is shown: it worked, lies within every brush, and has a value of every filter.
  now() {
    const stamp = rows.version + '|' + JSON.stringify([...this.brushes]) + JSON.stringify([...this.values].map(([k, v]) => [k, [...v]]));
    if (this.from === stamp) return this.shown;
    this.from = stamp;
    const shown = this.shown = new Uint8Array(rows.n);
    for (let i = 0; i < rows.n; ++i) shown[i] = rows.usable(i) ? 1 : 0;
    for (const [key, [low, high]] of this.brushes) { const list = rows.values(key); for (let i = 0; i < rows.n; ++i) if (!(list[i] >= low && list[i] <= high)) shown[i] = 0; }
    for (const [name, kept] of this.values) {
      const p = rows.parameters.find(p => p.name === name);
      if (p && kept.size) for (let i = 0; i < rows.n; ++i) if (!kept.has(p.of[i])) shown[i] = 0;
    }
    return shown;
  },
  count() { let n = 0; for (const one of this.now()) n += one; return n; },
  clear() { this.brushes.clear(); this.values.clear(); },
};

const explore = {name: 'explore', title: 'Explore', settings: {},
  defaults() {
    const has = name => rows.columns.has(name), s = this.settings;
    const known = key => key === '' || key === 'status' || choices().some(([k]) => k === key);
    if (!s.x || !known(s.x)) s.x = has('time') && has('energy') ? 'time' : varying().length ? 'parameter:' + varying()[0].name : '\u0000seconds';
    if (!s.y || !known(s.y)) s.y = has('time') && has('energy') && s.x === 'time' ? 'energy' : '\u0000objective';
    if (s.colour === undefined || !known(s.colour)) s.colour = has('time') && has('energy') && varying().length ? 'parameter:' + varying()[varying().length - 1].name : '';
    if (s.front === undefined) Object.assign(s, {front: true, hull: false, how: 'best'});
    if (!s.value || !known(s.value)) s.value = '\u0000objective';
    const numbers = varying().map(p => p.name);
    if (!numbers.includes(s.px)) s.px = numbers[0];
    if (!numbers.includes(s.py) || s.py === s.px) s.py = numbers.find(n => /clock/.test(n) && n !== s.px) || numbers[1];
  },
  draw(main) {
    this.main = main;
    if (!rows.n) { this.empty = true; section(main, 'Explore', model.failure || 'Nothing has been measured yet.'); return; }
    this.empty = false;
    this.defaults();
    this.filter = element('section');
    main.append(this.filter);
    this.fillFilter();
    this.scatterPart(main); this.parallelPart(main); this.mapPart(main); this.eachPart(main);
  },
  redraw() { this.updateCount(); drawAll(); },
  updateCount() { if (this.counted) this.counted.textContent = `${keep.count()} of ${rows.n} configurations are shown`; },
  fillFilter() {
    const s = element('div', {class: 'controls'});
    this.counted = element('span', {class: 'note', role: 'status'});
    const chips = element('div', {class: 'chips'});
    const fill = name => {
      chips.replaceChildren();
      const p = rows.parameters.find(p => p.name === name);
      if (!p) return;
      const kept = keep.values.get(name) || new Set();
      p.values.forEach((v, k) => { if (k < 60) chips.append(element('button', {'aria-pressed': kept.has(k), onclick: event => {
        if (kept.has(k)) kept.delete(k); else kept.add(k);
        if (kept.size) keep.values.set(name, kept); else keep.values.delete(name);
        event.target.setAttribute('aria-pressed', kept.has(k));
        this.redraw();
      }}, String(v))); });
    };
    const names = varying().map(p => [p.name, p.name]);
    if (names.length) s.append(selectOf('keep values of', [['', '...'], ...names], '', fill), chips);
    s.append(element('button', {onclick: () => { keep.clear(); fill(''); this.redraw(); }}, 'Show all'), this.counted);
    this.filter.replaceChildren(s);
    this.updateCount();
  },
  scatterPart(main) {
    const s = this.settings, part = section(main, 'Scatter', 'Every configuration that worked. The line is the Pareto front of the two axes where both have a better side; click a point for all about it.');
    const set = name => value => { s[name] = value; drawOrWait(this.plot); };
    const check = (label, name) => { const box = element('input', {type: 'checkbox', checked: s[name], onchange: () => set(name)(box.checked)}); return element('label', {}, box, label); };
    part.append(element('div', {class: 'controls'}, selectOf('x', choices(), s.x, set('x')), selectOf('y', choices(), s.y, set('y')),
      selectOf('colour', [['', 'one'], ['status', 'status'], ...choices()], s.colour, set('colour')), check('Pareto front', 'front'), check('convex hull', 'hull'), check('linear axes', 'linear')));
    this.plot = scatter(part, () => {
      const log = key => !s.linear && !categories(key) && (([from, to]) => from > 0 && to / from > 3)(rows.range(key));
      return {x: {key: s.x, log: log(s.x)}, y: {key: s.y, log: log(s.y)}, colour: s.colour, shown: keep.now(),
        marks: bestAndDefault(),
        lines: (xs, ys, good, n) => {
          const list = [];
          if (s.front && direction(s.x) && direction(s.y) && s.x !== s.y) list.push({points: frontOf(xs, ys, good, n, direction(s.x), direction(s.y)).map(i => [xs[i], ys[i]]), stroke: colour('accent'), width: 1.6});
          if (s.hull) { const h = hullOf(xs, ys, good, n); if (h.length) list.push({points: [...h, h[0]], stroke: colour('soft'), dash: [4, 4]}); }
          return list;
        }};
    }, {name: 'scatter', label: 'Scatter of configurations; arrow keys go from point to point, Enter opens one'});
  },
  parallelPart(main) {
    if (!varying().length) return;
    const part = section(main, 'Parallel coordinates', 'A line is a configuration. Drag along an axis to keep a range, click it to let go; what is kept is kept in every view.');
    const names = varying().map(p => 'parameter:' + p.name), quantities = ['time', 'energy', 'power'].filter(n => rows.columns.has(n) && n !== objectiveName());
    const keys = [...names.slice(0, 10), ...quantities.slice(0, 2), '\u0000objective'];
    parallel(part, () => ({keys, colour: '\u0000objective', shown: keep.now(), brushes: keep.brushes, most: 6000, brushed: () => this.redraw()}));
  },
  mapPart(main) {
    const list = varying();
    if (list.length < 2) return;
    const s = this.settings, part = section(main, 'Map', 'Two parameters against each other, a block size against a clock for one; the best, the median or the count over all others.');
    const names = list.map(p => [p.name, p.name]), set = name => value => { s[name] = value; drawOrWait(map); };
    part.append(element('div', {class: 'controls'}, selectOf('across', names, s.px, set('px')), selectOf('up', names, s.py, set('py')),
      selectOf('of', choices({parameters: false}), s.value, set('value')), selectOf('the', [['best', 'best'], ['median', 'median'], ['count', 'count']], s.how, set('how'))));
    const of = name => rows.parameters.find(p => p.name === name);
    const map = heat(part, () => ({px: of(s.px), py: of(s.py), key: s.value, how: s.how, shown: keep.now()}));
  },
  // The objective by each parameter: the best of each value, and some of the rest.
  eachPart(main) {
    const list = varying().slice(0, 12);
    if (!list.length) return;
    const part = section(main, `${objectiveName()} by parameter`, 'The line joins the best of each value over all others; dots are configurations (of very many, some).'), grid = element('div', {class: 'grid'});
    part.append(grid);
    for (const {name} of list) {
      const cell = element('div');
      grid.append(cell);
      lines(cell, () => {
        const p = rows.parameters.find(p => p.name === name), shown = keep.now(), values = rows.values('\u0000objective'), larger = direction('\u0000objective') > 0;
        const order = p.values.map((v, k) => k).sort((a, b) => typeof p.values[a] === 'number' && typeof p.values[b] === 'number' ? p.values[a] - p.values[b] : a - b), place = [];
        order.forEach((k, at) => { place[k] = at; });
        const best = new Array(p.values.length).fill(-1), kept = [];
        for (let i = 0; i < rows.n; ++i) {
          if (!shown[i] || values[i] !== values[i]) continue;
          const v = p.of[i];
          if (best[v] < 0 || (larger ? values[i] > values[best[v]] : values[i] < values[best[v]])) best[v] = i;
          kept.push(i);
        }
        const stride = Math.max(1, Math.ceil(kept.length / 1500)), some = kept.filter((_, k) => k % stride === 0), lead = order.filter(k => best[k] >= 0);
        return {x: {title: name, names: order.map(k => String(p.values[k])), range: [-0.5, p.values.length - 0.5]}, y: {title: axisTitle('\u0000objective'), unit: unitOf('\u0000objective'), log: canBeLog(kept.map(i => values[i]), kept.length)},
          series: [{x: some.map((i, k) => place[p.of[i]] + ((k * 2654435761 % 1000) / 1000 - 0.5) * 0.5), y: some.map(i => values[i]), stroke: colour('main'), only: true, dots: true, label: '', hint: k => `${show(values[some[k]], unitOf('\u0000objective'))}: ${rows.configuration(some[k])}`},
            {x: lead.map(k => place[k]), y: lead.map(k => values[best[k]]), stroke: colour('accent'), dots: true, label: '', hint: k => `best with ${p.values[lead[k]]}: ${show(values[best[lead[k]]], unitOf('\u0000objective'))}`}]};
      }, {name: 'by-' + name, height: 220, label: `${objectiveName()} by ${name}`});
    }
  },
  // While rows stream in it is drawn anew at most twice a second, and for large sessions less often than it costs.
  update(what) {
    if (what !== 'rows' && what !== 'head') return;
    if (this.empty || what === 'head' && !rows.n) { if (rows.n) openView('explore'); return; }
    if (this.late) return;
    const cost = figures.reduce((sum, one) => sum + one.drawn, 0);
    this.late = setTimeout(() => { this.late = null; if (current === this && rows.n) { this.defaults(); this.redraw(); } else if (current === this) openView('explore'); }, Math.max(500, 20 * cost));
  },
};
views.push(explore, findingsView);
