// Run: what is tuned on what, how far it is, the best so far; its progress, the board, failures, the log.
const card = (value, label) => element('div', {class: 'card'}, element('div', {class: 'big'}, value), element('div', {class: 'label'}, label));

function bestName() {
  const o = model.head.objective;
  return o.pareto ? `best ${o.quantity || 'first objective'} of the Pareto front` : `best ${o.name}`;
}
function answerCards(parent) {
  const head = model.head;
  if (!head.best) { parent.append(element('p', {}, head.rows ? 'No configuration worked yet. The failures below say why.' : 'Nothing has been measured yet.')); return; }
  parent.append(element('p', {}, element('code', {}, describe(head.best.configuration))));
  const cards = element('div', {class: 'cards'});
  const add = (value, label) => cards.append(card(value, label));
  const i = interval(head.best);
  add(sure(head.best) + show(head.best.objective, head.objective.unit), `${bestName()}${i ? ` (95 % interval${i})` : ''}`);
  for (const [name, value] of [['default', head.default?.objective], ['median', head.median]])
    if (head.gains[name]) add(digits(head.gains[name], 3) + (head.gains[name + '_half_width'] ? ' ± ' + digits(head.gains[name + '_half_width'], 2) : '') + ' ×', `better than the ${name} (${show(value, head.objective.unit)})`);
  if (head.best.probability_best !== undefined)
    add(percent(head.best.probability_best), 'probability of being the best of those measured again' +
      (head.best.expected_loss !== undefined ? `; expected loss ${percent(head.best.expected_loss)}` : ''));
  if (head.gains.energy_saved) add(percent(head.gains.energy_saved), 'less energy than the fastest');
  if (head.gains.time_lost) add(percent(head.gains.time_lost), 'more time than the fastest');
  parent.append(cards);
  if (head.best.probability_best < 0.6)
    parent.append(element('p', {}, 'The probability is low: the best ones are equally good within the noise. Any of them will do where the expected loss is small; otherwise measure longer on a quiet machine (--max-seconds 1).'));
}

const unconfirmed = row => row.unconfirmed ? ` (not confirmed, ${show(row.unconfirmed.expected, model.head.objective.unit)} expected)` : '';
function topTable(parent) {
  const head = model.head, o = head.objective;
  if (!head.top.length) return;
  const part = section(parent, `The ${head.top.length} best`, head.top.some(r => r.unconfirmed) &&
    `Expected values: confirmed values were ${digits(head.search_repeats.factor, 3)} times those of the search.`);
  const names = head.quantities.filter(q => q !== o.name && head.top.some(r => valueOf(r, q) !== undefined)).slice(0, 7);
  table(part, ['#', o.name, ...names, 'configuration'],
    head.top.map((r, k) => [k + 1, sure(r) + show(r.objective, o.unit) + interval(r) + unconfirmed(r), ...names.map(q => show(valueOf(r, q), unitOf(q))),
      element('button', {title: 'all about it', onclick: () => openDetail(rows.place.get(r.row))}, describe(r.configuration))]), [0, 1, ...names.map((_, k) => k + 2)]);
}
function failureTable(parent) {
  if (!model.head.failures.length) return;
  const part = section(parent, 'Failures', 'The commonest first, with the message of the first configuration of each kind.');
  table(part, ['status', 'configurations', 'example', 'message'], model.head.failures.map(f =>
    [f.status, f.count, element('code', {}, describe(f.configuration)), element('pre', {}, f.message || '(no message was recorded)')]), [1]);
}
// The share of each kernel of a round: this cannot be measured while they overlap.
function attribution(parent) {
  const a = model.head.attribution;
  if (!a || !a.kernels.length) return;
  const part = section(parent, 'Attributed to kernels', `Modelled, not measured: ${a.method === 'shapley' ?
    'what a kernel adds to a round, over all orders in which they may come together (Shapley values); shares add up to the round.' :
    'the round less the same round without the kernel; shares do not add up to the round.'}`);
  const names = ['energy', 'time'].filter(q => a.kernels.every(k => k[q]));
  table(part, ['kernel', ...names], a.kernels.map(k => [k.name, ...names.map(q => show(k[q].value, unitOf(q)) + ' ± ' + show(k[q].half_width, unitOf(q)))]),
    names.map((_, i) => i + 1));
}
function environment(parent) {
  const part = section(parent, 'Environment');
  table(part, ['', ''], Object.entries(model.head.environment).filter(([, v]) => v !== '').map(([k, v]) =>
    [k.replaceAll('_', ' '), v !== null && typeof v === 'object' ? element('code', {}, JSON.stringify(v)) : String(v)]));
}

function convergence(parent) {
  const part = section(parent, 'Best so far');
  let by = 'configurations';
  const hasTime = () => model.head.convergence.some(p => p[2] !== null);
  const spec = () => {
    const points = model.head.convergence.filter(p => by === 'configurations' || p[2] !== null);
    return {x: {title: by === 'configurations' ? 'configurations evaluated' : 'time since the first result', whole: by === 'configurations', unit: by === 'configurations' ? '' : 's'},
      y: {title: axisTitle('\u0000objective'), unit: model.head.objective.unit, range: model.head.convergence_range},
      series: [{x: points.map(p => by === 'configurations' ? p[0] : p[2]), y: points.map(p => p[1]), steps: true, stroke: colour('main')}],
      empty: 'nothing has worked yet'};
  };
  part.append(element('div', {class: 'controls'}, selectOf('over', [['configurations', 'configurations'], ...(hasTime() ? [['seconds', 'seconds']] : [])], by, v => { by = v; own.draw(); })));
  const own = lines(part, spec, {name: 'best-so-far', label: 'Best value so far'});
  return own;
}

const placeOf = row => row ? rows.place.get(row.row) : undefined;
const bestAndDefault = () => model.head ? [{place: placeOf(model.head.default), label: 'default', fill: colour('bad')}, {place: placeOf(model.head.best), label: 'best', fill: colour('good')}] : [];
function tradeOff(parent) {
  if (!rows.columns.has('time') || !rows.columns.has('energy') || rows.n < 2) return;
  const part = section(parent, 'Time against energy', 'Every configuration that worked; down and to the left is better. The line is the Pareto front: nothing is both faster and needs less energy.');
  scatter(part, () => ({x: {key: 'time', log: true}, y: {key: 'energy', log: true}, colour: '', shown: keep.now(), marks: bestAndDefault(),
    lines: (xs, ys, good, n) => [{points: frontOf(xs, ys, good, n, -1, -1).map(i => [xs[i], ys[i]]), stroke: colour('accent'), width: 1.6}]}),
    {name: 'time-energy', label: 'Time against energy'});
}

// The board while its energy was measured: power, clocks, temperature, why clocks are what they are.
const device = {t: [], power_w: [], core_mhz: [], memory_mhz: [], temperature_c: [], window: [], reasons: [],
  take(more) {
    const most = 6000;
    for (const name of ['t', 'power_w', 'core_mhz', 'memory_mhz', 'temperature_c', 'window', 'reasons']) {
      for (const value of more[name]) this[name].push(value);
      if (this[name].length > most) this[name].splice(0, this[name].length - most);
    }
  },
  clear() { for (const name of ['t', 'power_w', 'core_mhz', 'memory_mhz', 'temperature_c', 'window', 'reasons']) this[name].length = 0; },
};
function deviceStrip(parent) {
  const part = section(parent, 'Device', 'What the energy meter reads while it measures; shaded: the windows whose energy counts. Marks at the top: something held the clocks down.');
  const held = () => device.reasons.map((r, i) => [r, i]).filter(([r]) => r && !/^(idle|gpu_idle|none)$/.test(r));
  const spans = () => {
    const list = [];
    device.window.forEach((w, i) => {
      const open = list[list.length - 1];
      if (w === 1) { if (open && !open.closed) open.to = device.t[i]; else list.push({from: device.t[i], to: device.t[i], fill: colour('window')}); }
      else if (open) open.closed = true;
    });
    return list;
  };
  const plots = [['power_w', 'power', 'W'], ['core_mhz', 'core clock (MHz)', ''], ['memory_mhz', 'memory clock (MHz)', ''], ['temperature_c', 'temperature (°C)', '']];
  const cells = plots.map(([key, title, unit]) => {
    const cell = element('div');
    const spec = () => {
      const from = device.t.length ? device.t[0] : 0, known = device.t.map((t, i) => i).filter(i => device[key][i] !== null);
      const marks = held();
      return {x: {title: 'time', unit: 's', range: device.t.length ? [0, Math.max(1, device.t[device.t.length - 1] - from)] : undefined},
        y: {title, unit},
        spans: spans().map(s => ({...s, from: s.from - from, to: s.to - from})),
        series: [{x: known.map(i => device.t[i] - from), y: known.map(i => device[key][i]), stroke: colour('main'), label: '',
            gap: k => k > 0 && device.t[known[k]] - device.t[known[k - 1]] > 1,
            hint: k => `${clock(device.t[known[k]])}: ${show(device[key][known[k]], unit)}${device.reasons[known[k]] ? ', ' + device.reasons[known[k]] : ''}`},
          ...(known.length && key === 'core_mhz' ? [{x: marks.map(([, i]) => device.t[i] - from), y: marks.map(() => Math.max(...known.map(i => device[key][i]))), stroke: colour('bad'), only: true, dots: true, label: 'held down', hint: k => marks[k][0]}] : [])]};
    };
    const own = lines(cell, spec, {name: key, height: 170, label: title});
    return {key, cell, own};
  });
  const grid = element('div', {class: 'grid'}, ...cells.map(c => c.cell));
  part.append(grid);
  const update = () => {
    part.hidden = !device.t.length;
    for (const {key, cell, own} of cells) { cell.hidden = !device[key].some(v => v !== null); if (!cell.hidden && !part.hidden) own.draw(); }
  };
  update();
  return update;
}

function liveStatus(parent) {
  const part = section(parent, 'Progress');
  const cards = element('div', {class: 'cards'}), bar = element('div', {}), slots = element('div'), buttons = element('div', {class: 'controls'});
  const note = element('p', {class: 'note', role: 'status'});
  const button = (label, what, title) => element('button', {title, onclick: async () => {
    note.textContent = 'asked: ' + label;
    const answer = await ask(what);
    if (answer.error) note.textContent = answer.error;
  }}, label);
  const pause = button('Pause', 'pause', 'Nothing new is begun until you resume'), resume = button('Resume', 'resume', 'Go on');
  buttons.append(button('Stop after the current', 'stop', 'What runs ends; the search ends with the best so far'), pause, resume,
    button('Confirm now', 'confirm', 'The search ends; the best are measured again, side by side'));
  part.append(element('div', {class: 'bar'}, bar), cards, slots, buttons, note);
  return () => {
    const live = model.live, run = model.run, p = live && live.progress;
    part.hidden = !live && !run;
    buttons.hidden = !live || data.saved;
    cards.replaceChildren();
    const state = live ? live.state : run && run.ended_at ? 'ended' : run ? 'not at work' : '–';
    pause.hidden = state !== 'running'; resume.hidden = state !== 'paused' && state !== 'pausing';
    const phase = live ? live.phase || 'searching' : run && run.ended ? run.ended : run ? run.phase : '';
    cards.append(card(state, phase + (live && live.stage ? `, ${live.stage}` : '')));
    if (p) {
      cards.append(card(`${p.evaluated + p.known} of ${p.total}`, `configurations${p.known ? `, ${p.known} known before` : ''}${p.failed ? `, ${p.failed} failed` : ''}`));
      cards.append(card(p.seconds_left === null ? '–' : duration(p.seconds_left), `left; ${duration(p.seconds)} so far`));
      if (p.rate !== null) cards.append(card(p.rate >= 1 ? digits(p.rate, 3) + ' / s' : digits(60 * p.rate, 3) + ' / min', 'configurations evaluated'));
      if (p.best !== null) cards.append(card(show(p.best, model.head ? model.head.objective.unit : ''), 'best so far'));
      bar.style.width = Math.min(100, 100 * (p.evaluated + p.known) / Math.max(1, p.total)) + '%';
    } else bar.style.width = run && run.ended_at ? '100%' : '0';
    slots.replaceChildren();
    if (live && live.slots.length) table(slots, ['slot', 'now', 'for'], live.slots.map(s => [s.slot, element('code', {}, s.configuration), duration(live.at - s.since)]), [0]);
    if (live) for (const note of live.notes) slots.append(element('p', {class: 'note'}, 'note: ' + note));
  };
}

function logPart(parent) {
  const part = section(parent, 'Log'), box = element('div', {class: 'log', role: 'log', tabindex: 0});
  part.append(box);
  let shown = 0;
  return () => {
    part.hidden = !model.log.length;
    if (shown > model.log.length) { box.replaceChildren(); shown = 0; }
    const below = box.scrollTop + box.clientHeight >= box.scrollHeight - 30;
    for (const line of model.log.slice(shown)) box.append(element('div', {class: line.level}, clock(line.time) + ' ' + line.text));
    while (box.children.length > 600) box.firstChild.remove();
    shown = model.log.length;
    if (below) box.scrollTop = box.scrollHeight;
  };
}

const run = {name: 'run', title: 'Run',
  draw(main) {
    this.status = data.saved ? null : liveStatus(main);
    this.body = element('div');
    main.append(this.body);
    this.device = data.saved ? null : deviceStrip(main);
    this.log = data.saved ? null : logPart(main);
    this.rest = element('div');
    main.append(this.rest);
    this.fill();
    this.update('state'); this.update('log');
  },
  fill() {
    for (let k = figures.length - 1; k >= 0; --k) if (this.body.contains(figures[k].canvas)) figures.splice(k, 1);
    this.body.replaceChildren(); this.rest.replaceChildren();
    if (!model.head) { this.body.append(element('p', {class: 'note'}, model.failure || 'Reading ...')); return; }
    answerCards(section(this.body, model.live ? 'The answer so far' : 'The answer'));
    this.curve = model.head.convergence.length ? convergence(this.body) : null;
    tradeOff(this.body);
    topTable(this.body); failureTable(this.body); attribution(this.rest); environment(this.rest);
  },
  update(what) {
    if (what === 'head') this.fill();
    if (what === 'state' && this.status) this.status();
    if (what === 'device' && this.device) this.device();
    if (what === 'log' && this.log) this.log();
  },
};
views.push(run);
