'use strict';
{  // a scope of our own: names such as top belong to the window
// Draws the report from the one JSON document in the page. No network, no storage.
const data = JSON.parse(document.getElementById('data').textContent);
const style = getComputedStyle(document.documentElement);
const colour = name => style.getPropertyValue('--' + name).trim();
Chart.defaults.color = colour('soft');
Chart.defaults.borderColor = colour('line');
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.plugins.legend.display = false;

const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') node.className = value; else node.setAttribute(key, value);
  }
  for (const child of children) node.append(child);
  return node;
};
const main = document.getElementById('main');
const section = (title, note) => {
  const node = element('section', {}, element('h2', {}, title));
  if (note) node.append(element('p', {class: 'note'}, note));
  main.append(node);
  return node;
};
const prefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];
const scaled = ['s', 'J', 'W', 'Hz'];
const digits = (x, n = 4) => Number(x.toPrecision(n)).toString();
function show(value, unit = '') {
  if (value === null || value === undefined || !isFinite(value)) return '–';
  if (!scaled.includes(unit) || value === 0) return (Number.isInteger(value) ? value : digits(value)) + (unit ? ' ' + unit : '');
  const [factor, prefix] = prefixes.find(([f]) => Math.abs(value) >= f) || prefixes[prefixes.length - 1];
  return digits(value / factor) + ' ' + prefix + unit;
}
const unitOf = name => data.units[name] || '';
const configuration = row => data.parameters.map((p, i) => p.name + '=' + p.values[row.c[i]]).join(', ');
// what has not converged has a wider interval than was asked for
const sure = row => row.unsure ? '~' : '';
function table(parent, headers, rows, numeric = []) {
  const head = element('tr', {}, ...headers.map((h, i) => element('th', numeric.includes(i) ? {class: 'number'} : {}, h)));
  const body = rows.map(r => element('tr', {}, ...r.map((cell, i) =>
      element('td', numeric.includes(i) ? {class: 'number'} : {}, cell instanceof Node ? cell : String(cell)))));
  parent.append(element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...body))));
}
function chart(parent, settings, tall = false) {
  const canvas = element('canvas');
  parent.append(element('div', {class: tall ? 'chart tall' : 'chart'}, canvas));
  return new Chart(canvas, settings);
}
const axis = (title, more = {}) => ({title: {display: true, text: title}, ...more});
// of a logarithmic axis: 1, 2, 3, 5, 10 ... have room for their names
const ticks = unit => ({callback: v => [1, 2, 3, 5].includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))) ? show(v, unit) : ''});
const tooltip = {callbacks: {label: item => item.raw.label || ''}};

document.getElementById('title').textContent = data.problem + ' on ' + data.device;
document.getElementById('subtitle').textContent =
    `${data.objective.direction === 'max' ? 'Largest' : 'Least'} ${data.objective.name}; ` +
    `${data.counts.total} configurations measured${data.counts.space ? ` of ${data.counts.space}` : ''}, ${data.counts.failed} failed` +
    `${data.counts.not_converged ? `, ${data.counts.not_converged} not converged (marked ~)` : ''}; ${data.created}`;
if (data.provenance !== 'measured') {
  const label = document.getElementById('provenance');
  label.hidden = false;
  label.textContent = data.provenance === 'replayed' ? 'replayed values: recorded earlier, nothing was measured for this page' :
    data.provenance + ' values: nothing on this page was measured on the device it names';
}

// Of a front nothing is best of all: it is told by the one that is best in its first objective.
const bestName = data.objective.pareto ? `best ${data.objective.quantity || 'first objective'} of the Pareto front` : `best ${data.objective.name}`;
const objectiveUnit = data.objective.unit;
function answer() {
  const part = section('The answer');
  if (!data.best) {
    part.append(element('p', {}, 'No configuration worked. The failures below say why.'));
    return;
  }
  part.append(element('p', {}, element('code', {}, configuration(data.best))));
  const cards = element('div', {class: 'cards'});
  const card = (value, label) => cards.append(
      element('div', {class: 'card'}, element('div', {class: 'big'}, value), element('div', {class: 'label'}, label)));
  const interval = data.best.e > 0 ? ' ± ' + show(1.96 * data.best.e, objectiveUnit) : '';
  card(sure(data.best) + show(data.best.v, objectiveUnit), `${bestName}${interval ? ' (95 % interval' + interval + ')' : ''}`);
  const against = (other, label) => {
    if (!other || !(other.v > 0) || !(data.best.v > 0)) return;
    const ratio = data.objective.direction === 'max' ? data.best.v / other.v : other.v / data.best.v;
    card(digits(ratio, 3) + ' ×', `better than ${label} (${show(other.v, objectiveUnit)})`);
  };
  against(data.default_row, 'the default');
  against(data.median, 'the median');
  if (data.best.probability_best !== undefined)
    card(percent(data.best.probability_best), 'probability of being the best of those measured again' +
      (data.best.expected_loss !== undefined ? `; expected loss ${percent(data.best.expected_loss)}` : ''));
  if (data.best.q && data.best.q.energy !== undefined && data.fastest && data.best.q.time > data.fastest.q.time) {
    const e = data.best.q, f = data.fastest.q;
    if (f.energy > 0) card(digits(100 * (1 - e.energy / f.energy), 3) + ' %', 'less energy than the fastest');
    if (e.time > 0) card(digits(100 * (e.time / f.time - 1), 3) + ' %', 'more time than the fastest');
  }
  part.append(cards);
}

function tradeOff() {
  const rows = data.rows.filter(r => r.q && r.q.energy > 0 && r.q.time > 0);
  if (rows.length < 2) return;
  const part = section('Time against energy', 'Every configuration; down and to the left is better. The line is the Pareto front: ' +
    'nothing is both faster and needs less energy. Hover to read a configuration.');
  const points = rows.map(r => ({x: r.q.time, y: r.q.energy, label: `${show(r.q.time, 's')}, ${show(r.q.energy, 'J')}: ${configuration(r)}`}));
  const front = [];
  for (const p of [...points].sort((a, b) => a.x - b.x || a.y - b.y))
    if (!front.length || p.y < front[front.length - 1].y) front.push(p);
  const mark = (row, label, name) => row && row.q && row.q.energy > 0 && row.q.time > 0 ? [{label, data: [{x: row.q.time, y: row.q.energy,
    label: `${label}: ${show(row.q.time, 's')}, ${show(row.q.energy, 'J')}: ${configuration(row)}`}], backgroundColor: colour(name), pointRadius: 7, pointStyle: 'rectRot'}] : [];
  chart(part, {type: 'scatter', data: {datasets: [
    ...mark(data.best, bestName, 'good'), ...mark(data.default_row, 'default', 'bad'),
    {label: 'Pareto front', data: front, showLine: true, borderColor: colour('accent'), backgroundColor: colour('accent'), pointRadius: 4},
    {label: 'configurations', data: points, backgroundColor: colour('main') + '80', pointRadius: 2.5}]},
    options: {plugins: {tooltip, legend: {display: true, labels: {usePointStyle: true}}}, scales: {
      x: axis('time per launch', {type: 'logarithmic', ticks: ticks('s')}), y: axis('energy per launch', {type: 'logarithmic', ticks: ticks('J')})}}}, true);
  const a = data.analysis && data.analysis.against_default;
  if (a && a.of > 0) {
    const share = n => `${n} (${percent(n / a.of)})`;
    part.append(element('p', {}, `Of ${a.of} other configurations ${share(a.both)} are both faster and more efficient than the default, ` +
      `${share(a.only_faster)} only faster, ${share(a.only_more_efficient)} only more efficient, ${share(a.of - a.both - a.only_faster - a.only_more_efficient)} neither.`));
  }
}

function perParameter() {
  const varying = data.parameters.map((p, i) => [p, i]).filter(([p]) => p.values.length > 1);
  const rows = data.rows.filter(r => r.v !== null);
  if (!varying.length || rows.length < 2) return;
  const part = section(`${data.objective.name} by parameter`, data.counts.shown < data.counts.total - data.counts.failed ?
    `A sample of ${data.counts.shown} of ${data.counts.total} configurations, the best among them; the line joins the best of each value.` :
    'Each dot is a configuration; the line joins the best of each value.');
  const grid = element('div', {class: 'grid'});
  part.append(grid);
  const better = (a, b) => data.objective.direction === 'max' ? a > b : a < b;
  const positive = rows.every(r => r.v > 0);
  for (const [parameter, i] of varying) {
    const used = [...new Set(rows.map(r => r.c[i]))].sort((a, b) => a - b);
    const place = new Map(used.map((v, k) => [v, k]));
    const best = new Map();
    for (const r of rows) if (!best.has(r.c[i]) || better(r.v, best.get(r.c[i]).v)) best.set(r.c[i], r);
    const jitter = k => ((k * 2654435761) % 1000) / 1000 - 0.5;
    chart(grid, {type: 'scatter', data: {datasets: [
      {data: used.map(v => ({x: place.get(v), y: best.get(v).v, label: `best with ${parameter.values[v]}: ${show(best.get(v).v, objectiveUnit)}`})),
       showLine: true, borderColor: colour('accent'), backgroundColor: colour('accent'), pointRadius: 3},
      {data: rows.map((r, k) => ({x: place.get(r.c[i]) + 0.5 * jitter(k + 1), y: r.v, label: `${show(r.v, objectiveUnit)}: ${configuration(r)}`})),
       backgroundColor: colour('main') + '66', pointRadius: 2}]},
      options: {plugins: {tooltip, title: {display: true, text: parameter.name, color: colour('ink')}}, scales: {
        x: {min: -0.6, max: used.length - 0.4, ticks: {stepSize: 1, includeBounds: false, callback: v => Number.isInteger(v) && v >= 0 && v < used.length ? parameter.values[used[v]] : ''}, grid: {display: false}},
        y: {type: positive ? 'logarithmic' : 'linear', ticks: {maxTicksLimit: 6, callback: v => show(v, objectiveUnit)}}}}});
  }
}

function importance() {
  const found = data.importance;
  if (!found || !found.shares.length && !found.ruled_out.length) return;
  const part = section('What matters', 'Share of the variance of the objective\'s logarithm over all combinations of the values that were measured, as a model ' +
    'of the results has it: modelled, not measured. Two names: what they do together beyond what each does alone. Intervals of 95 %.');
  if (found.shares.length) table(part, ['parameters', 'share', 'interval'], found.shares.map(s =>
    [element('code', {}, s.parameters.join(' with ')), percent(s.share), `${percent(s.low)} to ${percent(s.high)}`]), [1, 2]);
  if (found.ruled_out.length) part.append(element('p', {}, 'Never worked: ' +
    found.ruled_out.map(r => `${r.parameter} = ${r.value} (${r.tried} tried)`).join(', ')));
}

function convergence() {
  if (data.convergence.length < 2) return;
  const part = section('Convergence', 'Best value found so far, over the configurations in the order they were evaluated.');
  chart(part, {type: 'line', data: {datasets: [{data: data.convergence.map(([x, y]) => ({x, y, label: `after ${x}: ${show(y, objectiveUnit)}`})), stepped: true,
    borderColor: colour('main'), borderWidth: 2, pointRadius: 0}]},
    options: {parsing: false, interaction: {mode: 'nearest', intersect: false}, plugins: {tooltip}, scales: {x: axis('configurations', {type: 'linear'}), y: axis(data.objective.name, {min: data.convergence_range[0], max: data.convergence_range[1], ticks: {callback: v => show(v, objectiveUnit)}})}}});
}

function top() {
  if (!data.top.length) return;
  const part = section(`The ${data.top.length} best`);
  const quantities = data.quantities.filter(q => data.top.some(r => r.q && r.q[q] !== undefined)).slice(0, 8);
  table(part, ['#', data.objective.name, ...quantities.filter(q => q !== data.objective.name), 'configuration'],
    data.top.map((r, k) => [k + 1, sure(r) + show(r.v, objectiveUnit) + (r.e > 0 ? ' ± ' + show(1.96 * r.e, objectiveUnit) : ''),
      ...quantities.filter(q => q !== data.objective.name).map(q => show(r.q[q], unitOf(q))), element('code', {}, configuration(r))]),
    [0, 1, ...quantities.map((_, k) => k + 2).slice(0, quantities.filter(q => q !== data.objective.name).length)]);
}

const percent = share => digits(100 * share, 3) + ' %';
function analysis() {
  const a = data.analysis;
  if (!a) return;
  if (a.hull) hull(a.hull);
  if (a.correlations.length) correlations(a.correlations, a.words || []);
  if (a.centrality && a.centrality.length) centrality(a.centrality);
}

function hull(h) {
  const part = section('Speed against efficiency', 'The same turned round: up and to the right is better. The outline is the convex hull of all configurations; ' +
    'the dashed lines go through the fastest and the most efficient one, and up and right of both lie the compromises between them.');
  const rows = data.rows.filter(r => r.q && r.q.energy > 0 && r.q.time > 0);
  const speedOf = r => h.speed in r.q ? r.q[h.speed] : 1 / r.q.time;
  const efficiencyOf = r => h.efficiency in r.q ? r.q[h.efficiency] : 1 / r.q.energy;
  const points = rows.map(r => ({x: speedOf(r), y: efficiencyOf(r), label: `${show(r.q.time, 's')}, ${show(r.q.energy, 'J')}: ${configuration(r)}`}));
  const corner = p => ({x: p.speed, y: p.efficiency, label: `${show(p.time, 's')}, ${show(p.energy, 'J')}: ${p.configuration}`});
  const outline = [...h.corners, h.corners[0]].map(corner);
  const [fast, thrifty] = [corner(h.fastest), corner(h.most_efficient)];
  const least = key => Math.min(...outline.map(p => p[key]));
  const dashed = data => ({data, showLine: true, borderColor: colour('soft'), borderDash: [5, 5], borderWidth: 1, pointRadius: 0});
  const name = (text, fallback) => text + (unitOf(text) ? ` (${unitOf(text)})` : fallback);
  chart(part, {type: 'scatter', data: {datasets: [
    {label: 'fastest', data: [fast], backgroundColor: colour('bad'), pointRadius: 7, pointStyle: 'rectRot'},
    {label: 'most efficient', data: [thrifty], backgroundColor: colour('good'), pointRadius: 7, pointStyle: 'rectRot'},
    {label: 'convex hull', data: outline, showLine: true, borderColor: colour('accent'), borderWidth: 1.5, backgroundColor: colour('accent'), pointRadius: 3},
    dashed([{x: least('x'), y: fast.y}, fast]), dashed([{x: thrifty.x, y: least('y')}, thrifty]),
    {label: 'configurations', data: points, backgroundColor: colour('main') + '80', pointRadius: 2.5}]},
    options: {plugins: {tooltip, legend: {display: true, labels: {usePointStyle: true, filter: item => item.text}}}, scales: {x: axis(name(h.speed, '')), y: axis(name(h.efficiency, ''))}}}, true);
  const facts = element('ul', {});
  const fact = text => facts.append(element('li', {}, text));
  fact(`The most efficient configuration needs ${percent(h.energy_saved)} less energy than the fastest and is ${percent(h.speed_lost)} slower.`);
  fact(`${h.beat_fastest_in_energy} configurations are more efficient than the fastest, ${h.beat_most_efficient_in_speed} are faster than the most efficient, ${h.beat_both} are both.`);
  fact(`Two configurations whose times differ by at most 1 % differ in energy by a factor of up to ${digits(h.energy_within_one_percent, 3)}: time alone does not tell energy.`);
  part.append(facts);
}

function correlations(list, words) {
  const sureness = (r, i) => r.toFixed(2) + (i ? ` (${i.low.toFixed(2)} to ${i.high.toFixed(2)})${i.p < 0.05 ? '*' : ''}` : '');
  const withEnergy = list.some(c => c.efficiency !== undefined);
  const part = section(withEnergy ? 'What goes with speed and with efficiency' : 'What goes with speed',
    'Correlation over all configurations: near 1, larger values go along with it; near -1, smaller ones do; near 0 it says nothing ' +
    'on its own. The strongest stand on top. In brackets 95 % of a bootstrap; * marks p < 0.05 after correction for all of them (Holm).');
  table(part, ['name', 'kind', 'speed', ...(withEnergy ? ['efficiency'] : [])], list.map(c =>
    [element('code', {}, c.name), (c.parameter ? 'parameter' : 'quantity') + (c.moves ? ', moves' : ''), sureness(c.speed, c.speed_interval),
     ...(withEnergy ? [c.efficiency === undefined ? '–' : sureness(c.efficiency, c.efficiency_interval)] : [])]), [2, 3]);
  for (const text of words) part.append(element('p', {}, text));
}

function centrality(list) {
  const part = section('How hard the search is', 'Proportion of centrality (Schoonhoven et al., 2022): how much of where random local searches end ' +
    'lies within so much of the best. A line that is high at the left belongs to an easy space: most searches end at the best.');
  const colours = ['main', 'accent'];
  chart(part, {type: 'line', data: {datasets: list.map((c, k) => ({label: `${c.name} (${c.minima} local minima)`, borderColor: colour(colours[k % 2]),
    backgroundColor: colour(colours[k % 2]), pointRadius: 2, data: c.curve.map(([x, y]) => ({x: 100 * (x - 1), y: 100 * y, label: `${digits(100 * y, 3)} % within ${digits(100 * (x - 1), 3)} % of the best`}))}))},
    options: {parsing: false, plugins: {tooltip, legend: {display: true}}, scales: {x: axis('within so much of the best (%)', {type: 'linear'}), y: axis('share of the ends of searches (%)', {min: 0, max: 100})}}});
}

function failures() {
  if (!data.failures.length) return;
  const part = section('Failures', 'The commonest first, with the words of the first configuration of each kind.');
  table(part, ['status', 'configurations', 'example', 'words'], data.failures.map(f =>
    [f.status, f.count, element('code', {}, f.configuration), element('pre', {}, f.message)]), [1]);
}

// what each kernel of a round owes: nobody measures that while they overlap
function attribution() {
  const a = data.attribution;
  if (!a || !a.kernels.length) return;
  const part = section('Attributed to kernels', `Modelled, not measured: ${a.method === 'shapley' ?
    'what a kernel adds to a round, over all orders in which they may come together (Shapley values); shares add up to the round.' :
    'the round less the same round without the kernel; shares do not add up to the round.'}`);
  const names = ['energy', 'time'].filter(q => a.kernels.every(k => k[q]));
  table(part, ['kernel', ...names], a.kernels.map(k => [k.name, ...names.map(q => show(k[q].value, unitOf(q)) + ' ± ' + show(1.96 * k[q].standard_error, unitOf(q)))]),
    names.map((_, i) => i + 1));
}

function environment() {
  const part = section('Environment');
  table(part, ['', ''], Object.entries(data.environment).filter(([, v]) => v !== '').map(([k, v]) => [k.replaceAll('_', ' '), typeof v === 'object' ? element('code', {}, JSON.stringify(v)) : v]));
}

answer(); tradeOff(); perParameter(); importance(); analysis(); convergence(); top(); failures(); attribution(); environment();
document.getElementById('footer').textContent = `Written by ergotune ${data.version}.`;
}
