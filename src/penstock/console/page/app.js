// The frame of the console: which view is shown, what is well, whether anything is heard.

import { takeKey } from './acting.js';
import { h, link, patch, shown as children, to } from './dom.js';
import { span, clock } from './format.js';
import { follow, state } from './live.js';
import { glyph, mark } from './parts.js';
import { connectors } from './views/connectors.js';
import { groups } from './views/groups.js';
import { letters } from './views/letters.js';
import { liveQueries } from './views/livequeries.js';
import { log } from './views/log.js';
import { models } from './views/models.js';
import { overview } from './views/overview.js';
import { part } from './views/part.js';
import { settings } from './views/settings.js';
import { sql } from './views/sql.js';
import { state as state_ } from './views/state.js';
import { tail } from './views/tail.js';
import { topics } from './views/topics.js';
import { topology } from './views/topology.js';
import { windows } from './views/windows.js';
import { way } from './views/way.js';

const VIEWS = [
  { name: 'overview', title: 'Overview', view: overview },
  { name: 'topology', title: 'Topology', view: topology },
  { name: 'topics', title: 'Topics', view: topics },
  { name: 'groups', title: 'Groups', view: groups },
  { name: 'state', title: 'State', view: state_ },
  { name: 'sql', title: 'SQL', view: sql },
  { name: 'windows', title: 'Windows', view: windows },
  { name: 'dead-letters', title: 'Dead letters', view: letters },
  { name: 'connectors', title: 'Connectors', view: connectors },
  { name: 'live', title: 'Live queries', view: liveQueries },
  { name: 'models', title: 'Models', view: models },
  { name: 'settings', title: 'Settings', view: settings },
];
const MOODS = { good: 'running', bad: 'degraded', idle: '' };
const HIDDEN = [
  { name: 'log', title: 'Log', under: 'overview', view: log },
  { name: 'part', title: 'Part', under: 'overview', view: part },
  { name: 'tail', title: 'Records', under: 'topics', view: tail },
  { name: 'way', title: 'The way of a record', under: 'topics', view: way },
];

let shown = null; // the view with its words, and what it remembers
let asked = false;

function route() {
  const [name, ...words] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  const found = [...VIEWS, ...HIDDEN].find((each) => each.name === name) ?? VIEWS[0];
  const same = shown && shown.found === found && shown.words.join('/') === words.join('/');
  if (same) return;
  shown?.memory.leave?.();
  shown = { found, words, memory: { changed: draw } };
  document.getElementById('main').replaceChildren();
  draw();
  window.scrollTo(0, 0);
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const { found, words, memory } = shown;
    const title = words.length ? `${words.join(' ')} · ${found.title}` : found.title;
    document.title = `${state.now?.mood === 'bad' ? '(!) ' : ''}${title} · ${state.about?.app || 'Penstock'}`;
    patch(document.getElementById('head'), children(head()));
    patch(document.getElementById('nav'), nav(found));
    patch(document.getElementById('main'), children(found.view(words, memory)));
  });
}

function head() {
  const { about, now, cut } = state;
  return [
    link(['overview'], { class: 'brand' }, h('img', { src: '/icon.svg', alt: '', width: 22, height: 22 }), h('strong', {}, about?.app || 'Penstock')),
    now && link(['overview'], { class: `verdict ${now.mood}` }, glyph(MOODS[now.mood]), ' ', now.summary),
    h('span', { class: `wire ${cut ? 'cut' : ''}`, role: 'status' }, mark(cut ? 'cross' : 'dot', cut ? 'bad' : now ? 'good' : 'idle'), cut ? `cut off since ${clock(cut / 1000)} (${span((Date.now() - cut) / 1000)}); trying again` : now ? 'live' : 'connecting'),
    about && h('span', { class: 'about' }, `penstock ${about.command} · ${about.version}`),
  ];
}

function nav(found) {
  const current = found.under ?? found.name;
  const has = state.about?.has ?? {};
  return VIEWS.map((each, place) => has[each.name] !== false &&
    link([each.name], { key: each.name, 'aria-current': each.name === current ? 'page' : null, 'aria-keyshortcuts': place < 9 ? String(place + 1) : null },
      h('span', {}, each.title), place < 9 && h('kbd', { 'aria-hidden': 'true' }, String(place + 1)))).filter(Boolean);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = event.target.closest?.('input, textarea, select');
  if (event.key === 'Escape' && writing) event.target.blur();
  if (writing) return;
  const place = '123456789'.indexOf(event.key);
  if (place >= 0 && VIEWS[place]) {
    location.hash = to(VIEWS[place].name);
    document.getElementById('main').focus();
  } else if (event.key === '/') {
    const field = document.querySelector('main input');
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else shown?.memory.key?.(event);
});

takeKey();
window.addEventListener('hashchange', () => { takeKey(); route(); });
route();
follow({ onChange: draw, onRestart: () => shown?.memory.restarted?.() });
