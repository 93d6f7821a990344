// Where it comes from: the data in a saved page, or the program that serves this one.
const inFrame = window.top !== window;  // a notebook's: cookies do not travel there
const withToken = url => inFrame ? url + (url.includes('?') ? '&' : '?') + 'token=' + encodeURIComponent(data.token) : url;
async function get(url, options = {}) {
  const answer = await fetch(url, {...options, headers: {'X-Ergotune-Token': data.token}, cache: 'no-store'});
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error || answer.statusText);
  return json;
}
const path = (id, rest = '') => '/api/session/' + encodeURIComponent(id) + rest;
async function ask(what) {
  try { return await get(path(model.id, '/' + what), {method: 'POST'}); } catch (error) { return {error: error.message}; }
}

let events = null, generation = 0, headAt = 0, headWanted = false;
function badge() {
  const node = byId('state');
  const live = model.live && !model.lost;
  node.hidden = data.saved;
  node.className = 'badge' + (model.lost ? ' lost' : live ? ' live' : '');
  node.textContent = model.over ? 'the page\'s server has ended; "ergotune watch" starts another' : model.lost ? 'connection lost, trying again' : model.loading !== null ? `reading ${model.loading}` : live ? 'live' : 'at rest';
}
// The document is asked for again when rows came, at most every two seconds, and not by a page that is not visible.
async function refreshHead(mine) {
  if (headWanted) return;
  headWanted = true;
  const wait = headAt + 2000 - performance.now();
  if (wait > 0) await new Promise(done => setTimeout(done, wait));
  while (document.hidden && mine === generation) await new Promise(done => setTimeout(done, 1000));
  headWanted = false;
  if (mine !== generation) return;
  try {
    const answer = await get(path(model.id));
    if (mine !== generation) return;
    headAt = performance.now();
    model.head = answer.document; model.runs = answer.runs;
    if (answer.document.error) throw new Error(answer.document.error);
    tellHead(); changed('head');
    if (answer.last < model.last) refreshHead(mine);
  } catch (error) {
    model.failure = error.message;
    if (!model.head) changed('head');
  }
}
function listen(mine) {
  if (events) events.close();
  events = new EventSource(withToken(`/events?session=${encodeURIComponent(model.id)}&after=${model.last}`));
  const on = (name, take) => events.addEventListener(name, event => {
    if (mine !== generation) return;
    if (model.lost) { model.lost = false; badge(); }
    take(JSON.parse(event.data), event);
  });
  on('results', (results, event) => {
    rows.take(results.results);
    model.last = Number(event.lastEventId);
    changed('rows'); refreshHead(mine);
  });
  on('state', state => {
    const ended = model.live && !state.live;
    model.live = state.live; model.run = state.run;
    badge(); changed('state');
    if (ended) refreshHead(mine);
  });
  on('device', samples => { device.take(samples); changed('device'); });
  on('log', list => { for (const line of list) if (!model.log.length || line.n > model.log[model.log.length - 1].n) model.log.push(line); model.log.splice(0, Math.max(0, model.log.length - 500)); changed('log'); });
  on('end', () => { events.close(); model.over = true; badge(); });
  events.onerror = () => {
    if (mine !== generation || model.over) return;
    model.lost = true; badge();
    // A browser gives up where the server was gone for a moment; what is known stays, the rest follows from the row on.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === generation) listen(mine); }, 1000);
  };
}
async function openSession(id) {
  const mine = ++generation;
  if (events) events.close();
  Object.assign(model, {id, head: null, findings: null, live: null, run: null, log: [], last: 0, failure: null, loading: '', over: false});
  rows.clear(); device.clear(); headAt = 0; headWanted = false;
  badge(); changed('head');
  refreshHead(mine);
  try {
    for (let more = true; more;) {
      const page = await get(path(id, `/results?after=${model.last}&limit=${rows.n ? 20000 : 5000}`));
      if (mine !== generation) return;
      rows.take(page.results);
      more = page.last > model.last;
      model.last = page.last; model.loading = `${rows.n} configurations`;
      badge(); changed('rows');
    }
  } catch (error) { model.failure = error.message; }
  if (mine !== generation) return;
  model.loading = null;
  badge(); listen(mine);
}
async function listSessions() {
  const answer = await get('/api/sessions');
  model.sessions = answer.sessions.filter(s => s.id);
  const unreadable = answer.sessions.find(s => s.error);
  if (!answer.first && unreadable) throw new Error(unreadable.error);
  const select = byId('session');
  select.hidden = answer.sessions.length < 2;
  select.replaceChildren(...answer.sessions.map(s => s.error ? element('option', {disabled: true}, `cannot be read: ${s.error}`) :
    element('option', {value: s.id, selected: s.id === (model.id || answer.first)}, `${s.id}: ${s.problem} on ${s.device} (${s.rows})`)));
  return answer.first;
}

makeTabs();
if (data.saved) {
  model.head = data.document; model.findings = data.findings; model.id = 'saved';
  rows.take(data.results);
  tellHead();
  openView(location.hash.slice(1) || 'run');
} else {
  // The token leaves the address bar, and with it the history: the cookie has it.
  history.replaceState(null, '', location.pathname + location.hash);
  openView(location.hash.slice(1) || 'run');
  byId('session').addEventListener('change', event => openSession(event.target.value));
  const begin = async () => {
    try {
      const first = await listSessions();
      if (first) return openSession(first);
      model.failure = 'No session yet: this page looks again every few seconds.';
    } catch (error) { model.failure = error.message; }
    changed('head');
    setTimeout(begin, 3000);
  };
  begin();
  setInterval(() => { if (!document.hidden && !model.lost && !model.over && model.id) listSessions().catch(() => {}); }, 30000);
}
// For tests, and for those who look behind the page: what it holds and how long its last drawings took, in ms.
window.ergotune = {model, rows, device, figures, views, keep, openView, openSession, frontOf, drawn: () => figures.map(one => one.drawn)};
