// What several views show of a part.

import { h, link } from './dom.js';
import { spark } from './charts.js';
import { count, rate } from './format.js';
import { series, state } from './live.js';

const SHAPES = {
  dot: 'M6 1.5a4.5 4.5 0 1 0 .01 0Z',
  triangle: 'M6 .8 11.6 11H.4Z',
  square: 'M1.5 1.5h9v9h-9Z',
  ring: 'M6 1a5 5 0 1 0 .01 0ZM6 3.4a2.6 2.6 0 1 1-.01 0Z',
  cross: 'M2.5 1 6 4.5 9.5 1 11 2.5 7.5 6 11 9.5 9.5 11 6 7.5 2.5 11 1 9.5 4.5 6 1 2.5Z',
  letter: 'M.5 2h11v8.5H.5ZM1.8 3.2 6 6.6l4.2-3.4Z',
  arrow: 'M2 1.2 11 6 2 10.8Z',
};
const GLYPHS = { running: 'dot', degraded: 'triangle', restarting: 'square', failed: 'square', silent: 'triangle', behind: 'triangle', letters: 'letter' };
const MOODS = { running: 'good', degraded: 'warn', behind: 'warn', letters: 'warn', silent: 'bad', restarting: 'bad', failed: 'bad' };
const MARKS = { well: ['dot', 'good'], unwell: ['triangle', 'warn'], died: ['square', 'bad'], letters: ['letter', 'warn'], moved: ['arrow', 'idle'], run: ['arrow', 'idle'] };

export const mark = (shape, tone) => h('svg', { class: `glyph ${tone}`, viewBox: '0 0 12 12', width: 11, height: 11, 'aria-hidden': 'true' }, h('path', { d: SHAPES[shape], 'fill-rule': 'evenodd' }));

// The state as a shape and a colour, so that neither is needed alone.
export const glyph = (name) => mark(GLYPHS[name] ?? 'ring', mood(name));
export const mood = (name) => MOODS[name] ?? 'idle';
export const badge = (name) => h('span', { class: `badge ${mood(name)}` }, glyph(name), name);

export function lagLine(part, options = {}) {
  return spark(state.history.at, series(part.key, 'lag'), { what: 'lag', show: count, ...options });
}

export function rateLine(part, what = 'in', options = {}) {
  return spark(state.history.at, series(part.key, what), { what: `rate ${what}`, show: rate, ...options });
}

export const partLink = (part) => link(['part', part.key], { class: 'name' }, part.key);

// What happened, newest on top.
export function happenings(found, most) {
  if (!found.length) return h('p', { class: 'quiet' }, 'Nothing has happened yet.');
  return h('ol', { class: 'line' }, found.slice(-most).reverse().map((each) =>
    h('li', { key: String(each.number), class: each.kind },
      h('time', {}, new Date(each.at * 1000).toLocaleTimeString('en-GB')),
      h('span', {}, mark(...(MARKS[each.kind] ?? ['ring', 'idle']))),
      h('span', {}, each.part && link(['part', each.part], {}, each.part), each.part ? ' ' : '', each.text))));
}
