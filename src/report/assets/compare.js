// Compare: sessions side by side. All numbers come from the program ("ergotune compare --json").
const compareView = {name: 'compare', title: 'Compare', chosen: new Set(),
  draw(main) {
    this.main = main;
    const part = section(main, 'Sessions', 'Choose two or more: other devices, other sizes, before and after a change of the code.');
    if (!this.chosen.size && model.id) this.chosen.add(model.id);
    const list = model.sessions.map(s => {
      const box = element('input', {type: 'checkbox', checked: this.chosen.has(s.id), 'aria-label': s.id, onchange: () => { if (box.checked) this.chosen.add(s.id); else this.chosen.delete(s.id); this.fetch(); }});
      return [box, s.id, s.problem, s.device, s.objective, s.rows, s.provenance, new Date(1000 * s.worked_at).toLocaleString()];
    });
    table(part, ['', 'session', 'problem', 'device', 'objective', 'rows', 'values', 'worked on'], list, [5]);
    this.out = element('div');
    main.append(this.out);
    this.fetch();
  },
  async fetch() {
    const ids = [...this.chosen];
    this.out.replaceChildren();
    if (ids.length < 2) return;
    try {
      const found = await get('/api/compare?' + ids.map(id => 'session=' + encodeURIComponent(id)).join('&'));
      if (ids.join() === [...this.chosen].join() && current === this) this.fill(found);
    } catch (error) { section(this.out, 'Comparison', error.message); }
  },
  fill(found) {
    const names = found.sessions.map(s => s.name), out = this.out;
    out.replaceChildren();
    const cards = element('div', {class: 'cards'});
    found.sessions.forEach(s => cards.append(card(s.best ? show(s.best.value, s.unit) : '–', `${s.name}: best ${s.objective}${s.best && s.best.half_width > 0 ? ' ± ' + show(s.best.half_width, s.unit, 2) : ''} of ${s.usable} that worked; ${s.problem} on ${s.device}${s.best ? '; ' + s.best.configuration : ''}`)));
    section(out, 'Best of each').append(cards);
    const pairs = section(out, 'What one\'s best loses in the other', 'Relative to that session\'s own best; the correlation is Spearman\'s over the configurations that worked in both.');
    const loss = (v, e) => v === null ? 'not measured there' : percent(v) + (e > 0 ? ' ± ' + digits(196 * e, 2) : '');
    table(pairs, ['sessions', 'common', 'rank correlation', 'best of the first in the second', 'best of the second in the first'], found.pairs.map(p => [`${names[p.a]} and ${names[p.b]}`, p.common,
      p.rank_correlation === null ? '–' : p.rank_correlation.toFixed(3), loss(p.loss_of_a_in_b, p.loss_of_a_in_b_error), loss(p.loss_of_b_in_a, p.loss_of_b_in_a_error)]), [1, 2, 3, 4]);
    if (found.points.length > 1) {
      const part = section(out, `${names[0]} against ${names[1]}`, 'A point is a configuration that worked in both.');
      const [a, b] = found.sessions;
      lines(part, () => ({x: {title: `${names[0]}: ${a.objective}`, unit: a.unit, log: found.points.every(p => p[0] > 0)}, y: {title: `${names[1]}: ${b.objective}`, unit: b.unit, log: found.points.every(p => p[1] > 0)},
        series: [{x: found.points.map(p => p[0]), y: found.points.map(p => p[1]), stroke: colour('main'), dots: true, only: true}]}), {name: 'comparison', height: 340, label: 'Values of common configurations'});
    }
    const ranks = section(out, 'The best, and where they stand in the others');
    table(ranks, ['configuration', ...names], found.configurations.map(c => [element('code', {}, c.configuration), ...c.values.map((v, k) => v === null ? '–' : `${show(v, found.sessions[k].unit)} (#${c.places[k]})`)]), names.map((_, k) => k + 1));
  },
  update() {},
};
if (!data.saved) views.push(compareView);
