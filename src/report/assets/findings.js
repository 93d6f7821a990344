// What to make of it: importance, trade-off, correlations, how hard the search is. All worked out by the program.
function importanceTable(parent) {
  const found = model.findings.importance;
  const noise = found && found.explained != null && !found.shares.length;
  if (!found || !found.shares.length && !found.ruled_out.length && !noise) return;
  const part = section(parent, 'What matters', 'Share of the variance of the objective\'s logarithm over all combinations of the values that were measured, as a model ' +
    'of the results has it: modelled, not measured' + (found.shares.length ? ` (it explains ${percent(found.explained)} of results that were held back)` : '') + '. Two names: what they do together beyond what each does alone. Intervals of 95 %.');
  if (found.shares.length) {
    const shares = found.shares.slice(0, 14), most = Math.max(...shares.map(s => s.high));
    figure(part, {name: 'importance', height: 22 * shares.length + 30, label: 'Importance of parameters', csv: () => [['parameters', 'share', 'low', 'high'], ...found.shares.map(s => [s.parameters.join(' with '), s.share, s.low, s.high])],
      paint: (surface, width) => {
        const left = Math.min(260, width * 0.4), scale = (width - left - 130) / most;
        shares.forEach((s, k) => {
          const y = 10 + 22 * k;
          surface.text(left - 8, y + 11, s.parameters.join(' with ').slice(0, 34), {fill: colour('ink'), anchor: 'end'});
          surface.rect(left, y, Math.max(1, s.share * scale), 14, colour(s.parameters.length > 1 ? 'accent' : 'main'));
          surface.line([[left + s.low * scale, y + 7], [left + s.high * scale, y + 7]], {stroke: colour('ink'), width: 1.5});
          surface.text(left + s.high * scale + 8, y + 11, `${percent(s.share)} (${digits(100 * s.low, 2)} to ${digits(100 * s.high, 2)})`, {fill: colour('soft'), size: 11});
        });
      }});
  }
  if (noise) part.append(element('p', {}, 'No parameter has an effect that can be distinguished from noise.'));
  if (found.ruled_out.length) part.append(element('p', {}, 'Never worked: ' +
    found.ruled_out.map(r => `${r.parameter} = ${r.value} (${r.tried} tried)`).join(', ')));
}

function hullSection(parent, a) {
  const q = a.quadrants;
  const part = section(parent, 'Speed against efficiency', 'Up and to the right is better. The outline is the convex hull of all configurations; ' +
    'the dashed lines go through the fastest and the most efficient one, and up and right of both lie the compromises between them.');
  const name = text => text + (unitOf(text) ? ` (${unitOf(text)})` : '');
  const least = key => Math.min(...a.hull.map(p => p[key]));
  const outline = [...a.hull, a.hull[0]];
  const hintOf = p => `${show(p.time, 's')}, ${show(p.energy, 'J')}: ${describe(p.configuration)}`;
  lines(part, () => ({x: {title: name(a.speed)}, y: {title: name(a.efficiency)}, series: [
    {x: outline.map(p => p.speed), y: outline.map(p => p.efficiency), stroke: colour('accent'), dots: true, label: 'convex hull', hint: i => hintOf(outline[i])},
    {x: [least('speed'), q.fastest.speed], y: [q.fastest.efficiency, q.fastest.efficiency], stroke: colour('bad'), dash: [5, 5], label: 'fastest', hint: () => hintOf(q.fastest)},
    {x: [q.most_efficient.speed, q.most_efficient.speed], y: [least('efficiency'), q.most_efficient.efficiency], stroke: colour('good'), dash: [5, 5], label: 'most efficient', hint: () => hintOf(q.most_efficient)}]}),
    {name: 'speed-efficiency', height: 340, label: 'Speed against efficiency'});
  const facts = element('ul', {}), fact = text => facts.append(element('li', {}, text));
  fact(`The most efficient configuration needs ${percent(q.energy_saved)} less energy than the fastest and is ${percent(q.speed_lost)} slower.`);
  fact(`${q.beat_fastest_in_energy} configurations are more efficient than the fastest, ${q.beat_most_efficient_in_speed} are faster than the most efficient, ${q.beat_both} are both.`);
  fact(`Two configurations whose times differ by at most 1 % differ in energy by a factor of up to ${digits(a.spread.energy_within_one_percent, 3)}: time alone does not predict energy.`);
  part.append(facts);
}
function correlations(parent, influences, findings) {
  const sureness = a => a.r.toFixed(2) + ` (${a.low.toFixed(2)} to ${a.high.toFixed(2)})${a.p < 0.05 ? '*' : ''}`;
  const strength = c => Math.abs((c.efficiency || c.speed).r);
  const list = [...influences].sort((a, b) => strength(b) - strength(a)).slice(0, 12);
  const withEnergy = list.some(c => c.efficiency !== undefined);
  const part = section(parent, withEnergy ? 'What goes with speed and with efficiency' : 'What goes with speed',
    'Correlation over all configurations: near 1, larger values go along with it; near -1, smaller ones do; near 0 it says nothing ' +
    'on its own. The strongest stand on top. In brackets 95 % of a bootstrap; * marks p < 0.05 after correction for all of them (Holm).');
  table(part, ['name', 'kind', 'speed', ...(withEnergy ? ['efficiency'] : [])], list.map(c =>
    [element('code', {}, c.name), c.kind + (c.moves ? ', moves' : ''), sureness(c.speed),
     ...(withEnergy ? [c.efficiency === undefined ? '–' : sureness(c.efficiency)] : [])]), [2, 3]);
  for (const text of findings) part.append(element('p', {}, text));
}
function centrality(parent, objectives) {
  const list = Object.entries(objectives).filter(([, c]) => c.minima > 0);
  if (!list.length) return;
  const part = section(parent, 'How hard the search is', 'Proportion of centrality (Schoonhoven et al., 2022): how much of where random local searches end ' +
    'lies within so much of the best. A line that is high at the left belongs to an easy space: most searches end at the best.');
  lines(part, () => ({x: {title: 'within so much of the best (%)'}, y: {title: 'share of the ends of searches (%)', range: [0, 100]},
    series: list.map(([name, c], k) => ({x: c.curve.map(at => 100 * (at.p - 1)), y: c.curve.map(at => 100 * at.share), stroke: palette[k % palette.length], dots: true,
      label: `${name} (${c.minima} local minima)`}))}), {name: 'centrality', label: 'Proportion of centrality'});
}
function againstDefault(parent, a) {
  const share = n => `${n} (${percent(n / a.of)})`;
  parent.append(element('p', {}, `Of ${a.of} other configurations ${share(a.both)} are both faster and more efficient than the default, ` +
    `${share(a.only_faster)} only faster, ${share(a.only_more_efficient)} only more efficient, ${share(a.of - a.both - a.only_faster - a.only_more_efficient)} neither.`));
}
function predictions(parent, found) {
  const seen = found.points.map(p => p[found.provenance]), modelled = found.points.map(p => p.modelled.value), ends = [seen[0], seen.at(-1)];
  const range = m => `${show(m.low, found.unit)} to ${show(m.high, found.unit)}`;
  const part = section(parent, `${found.quantity}: modelled beside ${found.provenance}`, `Each configuration as a model of all the others predicts it: modelled. ` +
    `The median error is ${percent(found.median_error)}, and ${percent(found.coverage)} of the ${found.provenance} values lie within the intervals of 95 %. The dashed line is where both are equal.`);
  lines(part, () => ({x: {title: found.provenance, unit: found.unit, log: true}, y: {title: 'modelled', unit: found.unit, log: true}, series: [
    {x: ends, y: ends, stroke: colour('soft'), dash: [5, 5], label: 'equal'},
    {x: seen, y: modelled, stroke: colour('main'), dots: true, only: true, label: 'configurations', hint: i => `${show(seen[i], found.unit)}, modelled ${range(found.points[i].modelled)}`}]}),
    {name: `predictions-${found.quantity}`, height: 300, label: `Predicted ${found.quantity}`});
  table(part, ['configuration', found.provenance, 'modelled', '95 %'], found.points.filter(p => p.configuration).map(p =>
    [element('code', {}, describe(p.configuration)), show(p[found.provenance], found.unit), show(p.modelled.value, found.unit), range(p.modelled)]), [1, 2]);
}

const findingsView = {name: 'findings', title: 'Findings',
  draw(main) { this.main = main; this.fill(); },
  async fetch(force) {
    if (this.busy || data.saved || !model.id) return;
    this.busy = true;
    const id = model.id;
    try { const found = await get(path(id, '/findings')); if (id === model.id) model.findings = found.error ? {failure: found.error} : found; }
    catch (error) { if (id === model.id) model.findings = {failure: error.message}; }
    this.busy = false;
    if (current === this) this.fill();
  },
  fill() {
    const main = this.main;
    main.replaceChildren(); figures.length = 0;
    if (!model.findings) {
      // Seconds of work on the machine that measures: while a session runs only when it is asked for.
      if (!data.saved && !model.live && model.head) this.fetch();
      const part = section(main, 'Findings', model.live ? 'They take seconds of this machine\'s time, at the lowest priority; a session is at work on it.' : 'Working them out ...');
      if (model.live) part.append(element('button', {onclick: event => { event.target.disabled = true; this.fetch(); }}, 'Work them out now'));
      return;
    }
    if (model.findings.failure) { section(main, 'Findings', model.findings.failure); return; }
    if (!data.saved && model.head) main.append(element('div', {class: 'controls'}, element('button', {onclick: event => { event.target.disabled = true; this.fetch(); }}, 'Work them out again')));
    importanceTable(main);
    for (const found of model.findings.predictions || []) predictions(main, found);
    const a = model.findings.analysis;
    if (!a) { if (!main.children.length || !figures.length) section(main, 'Findings', 'Too few configurations worked to say more.'); return; }
    if (a.quadrants && a.spread) hullSection(main, a);
    if (a.against_default && a.against_default.of > 0) againstDefault(section(main, 'Against the default'), a.against_default);
    if (a.influences.length) correlations(main, a.influences, a.findings);
    centrality(main, a.centrality.objectives);
  },
  update(what) { if (what === 'head' && !model.findings && !this.busy) this.fill(); },
};
