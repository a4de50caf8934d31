// Tables, filters and facts, as several views have them.

import { h } from './dom.js';

const MOST_ROWS = 500;

export function table(heads, rows, { label = '', empty = 'There is nothing.' } = {}) {
  if (!rows.length) return h('p', { class: 'quiet' }, empty);
  return [
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, h('table', {},
      h('thead', {}, h('tr', {}, heads.map((each) => h('th', { scope: 'col', class: each.startsWith('#') ? 'number' : '' }, each.replace('#', ''))))),
      h('tbody', {}, rows.slice(0, MOST_ROWS).map(({ key, cells }) => h('tr', { key }, cells.map((each, place) =>
        h(place ? 'td' : 'th', { scope: place ? null : 'row', class: heads[place].startsWith('#') ? 'number' : '' }, each))))))),
    rows.length > MOST_ROWS && h('p', { class: 'quiet' }, `The first ${MOST_ROWS} of ${rows.length}; the filter finds the others.`),
  ];
}

export function filter(memory, label) {
  return h('input', { class: 'filter', type: 'search', 'aria-label': label, placeholder: `${label}  ( / )`, value: memory.filter ?? '', oninput: (event) => { memory.filter = event.target.value; memory.changed(); } });
}

export const matches = (memory, ...texts) => !memory.filter || texts.some((text) => String(text).toLowerCase().includes(memory.filter.toLowerCase()));

export function facts(rows) {
  return h('dl', { class: 'facts' }, rows.map(([name, text]) => [h('dt', { key: `n ${name}` }, name), h('dd', { key: `t ${name}` }, text)]));
}

export function waiting(memory, title) {
  return [h('h1', {}, title), h('p', { class: 'quiet', role: 'status' }, memory.trouble ? [memory.trouble.detail, memory.trouble.hint && ` · ${memory.trouble.hint}`] : 'Asking the log…')];
}

// What cannot be told now, above what was told before.
export const stale = (memory) => memory.trouble && h('p', { class: 'note', role: 'status' }, `Not up to date: ${memory.trouble.detail}`);
