// A box for SQL over tables and running states: asked once, or watched; as a table or a picture.

import { bars, line } from '../charts.js';
import { h } from '../dom.js';
import { clock, count, span } from '../format.js';
import { table } from '../lists.js';
import { listen } from '../stream.js';

const isNumber = ({ type }) => /^(int|bigint|double|decimal\b.*)$/.test(type);
const isTime = ({ type }) => type === 'timestamp' || type === 'date';
const kept = { query: '', as: 'table' }; // what is written stays while other views are looked at

export function sql(words, memory) {
  if (!memory.begun) {
    Object.assign(memory, { begun: true, relations: null, answer: null, problem: null, waiting: '', listening: null, asking: 0, changes: 0 });
    memory.leave = () => memory.listening?.close();
    memory.restarted = () => load(memory);
    load(memory);
  }
  return [
    h('h1', {}, 'SQL'),
    h('form', { onsubmit: (event) => { event.preventDefault(); ask(memory); } },
      h('label', { class: 'wide' }, 'One SELECT over tables and states',
        h('textarea', { name: 'query', rows: 4, spellcheck: 'false', autocomplete: 'off', placeholder: example(memory.relations), value: kept.query,
          oninput: (event) => { kept.query = event.target.value; },
          onkeydown: (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(memory); } } })),
      h('p', { class: 'bar' },
        h('button', { type: 'submit' }, 'Ask (Ctrl Enter)'),
        h('button', { type: 'button', 'aria-pressed': String(Boolean(memory.listening)), onclick: () => watch(memory) }, memory.listening ? 'Stop watching' : 'Watch'),
        h('span', { class: 'quiet', role: 'status' }, status(memory)))),
    memory.problem && h('p', { class: 'note bad', role: 'alert' }, memory.problem.detail, memory.problem.allowed && ` · ${memory.problem.allowed}`),
    memory.answer && result(memory),
    h('h2', {}, 'What can be asked'), relations(memory),
  ];
}

const example = (found) => `select * from ${found?.length ? quoted(found[0].name) : 'orders'} limit 100`;
const quoted = (name) => (/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``);

function status({ answer, listening, asking, waiting, changes }) {
  if (waiting) return waiting;
  if (asking) return 'Asking…';
  if (!answer) return listening ? 'Waiting for the first answer…' : '';
  const age = answer.stale_seconds === null ? 'of unknown age' : `at most ${span(answer.stale_seconds)} old`;
  return listening ? `Watching; ${changes ? `it changed ${count(changes)} ${changes === 1 ? 'time' : 'times'}, last at ${clock(answer.at / 1000)}` : 'it has not changed yet'}` : `${count(answer.rows.length)} rows, ${age}`;
}

function result(memory) {
  const { answer } = memory;
  const names = answer.columns.map((each) => each.name);
  const drawn = kept.as === 'picture' ? picture(answer) : null;
  return h('section', { key: 'answer', 'aria-label': 'Answer' },
    h('p', { class: 'bar' }, ['table', 'picture'].map((each) => h('button', { type: 'button', key: each, 'aria-pressed': String(kept.as === each), onclick: () => { kept.as = each; memory.changed(); } }, each === 'table' ? 'Table' : 'Picture')),
      answer.more && h('span', { class: 'warn' }, `There is more: these are the first ${count(answer.rows.length)} rows.`),
      Object.entries(answer.relations).map(([name, about]) => about.left_out > 0 && h('span', { class: 'warn', key: name }, `${count(about.left_out)} rows of ${name} cannot be read and are left out.`))),
    kept.as === 'picture' ? drawn ?? h('p', { class: 'quiet' }, 'A picture needs a column of numbers, and another one.') :
      table(answer.columns.map((each) => `${isNumber(each) ? '#' : ''}${each.name}`), answer.rows.map((row, place) => ({ key: String(place), cells: names.map((name) => text(row[name])) })), { label: 'Answer', empty: 'No rows.' }));
}

// A line over time where there is a time, else bars.
function picture({ columns, rows }) {
  const number = columns.findLast(isNumber);
  const time = columns.find(isTime);
  const name = time ?? columns.find((each) => each !== number);
  if (!number || !name || !rows.length) return null;
  const points = rows.map((row) => [row[name.name], Number(row[number.name])]).filter(([, value]) => Number.isFinite(value));
  return time ? line(points.map(([at, value]) => [Date.parse(at) / 1000, value]), { what: number.name }) : bars(points.map(([label, value]) => [text(label), value]), { what: number.name });
}

function text(value) {
  if (value === null || value === undefined) return h('i', { class: 'quiet' }, 'null');
  if (typeof value === 'number') return Number.isInteger(value) ? count(value) : String(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function relations(memory) {
  if (!memory.relations) return h('p', { class: 'quiet' }, memory.trouble ?? 'Asking the run…');
  return table(['Name', 'Kind', 'Columns', ''], memory.relations.map((each) => ({
    key: each.name,
    cells: [each.name, each.kind, h('span', { class: 'words' }, each.columns.map((column, place) => [place ? ', ' : '', each.key.includes(column.name) ? h('b', {}, column.name) : column.name, ` ${column.type}`])),
      h('button', { type: 'button', onclick: () => { kept.query = `select * from ${quoted(each.name)} limit 100`; document.querySelector('textarea').value = kept.query; ask(memory); } }, 'Look')],
  })), { label: 'Relations', empty: 'This application has neither tables nor states. Its streams: penstock query, in a terminal.' });
}

function ask(memory) {
  stop(memory);
  Object.assign(memory, { problem: null, waiting: '' });
  const number = (memory.asking = (memory.last = (memory.last ?? 0) + 1));
  fetch(`/v1/console/sql?query=${encodeURIComponent(kept.query)}`).then(async (response) => {
    const found = await response.json();
    if (memory.asking !== number) return;
    memory.asking = 0;
    if (response.ok) memory.answer = { ...found, at: Date.now() };
    else Object.assign(memory, { answer: null, problem: found });
  }).catch(() => { Object.assign(memory, { asking: 0, problem: { detail: 'No answer: the run may be away.' } }); }).finally(memory.changed);
  memory.changed();
}

function watch(memory) {
  if (memory.listening) {
    stop(memory);
    memory.changed();
    return;
  }
  Object.assign(memory, { asking: 0, answer: null, problem: null, waiting: '', changes: 0 });
  memory.listening = listen(`/v1/console/live/sql?query=${encodeURIComponent(kept.query)}`, {
    answer: (found) => {
      memory.changes += memory.answer ? 1 : 0;
      Object.assign(memory, { answer: { ...found, at: Date.now() }, waiting: '' });
      memory.changed();
    },
    waiting: (found) => { memory.waiting = `No answer at the moment: ${found.detail}`; memory.changed(); },
    trouble: (found) => { memory.waiting = `No answer at the moment: ${found.detail}`; memory.changed(); },
    problem: (found) => { stop(memory); memory.problem = found; memory.changed(); },
  });
  memory.changed();
}

function stop(memory) {
  memory.listening?.close();
  Object.assign(memory, { listening: null, waiting: '' });
}

function load(memory) {
  fetch('/v1/console/relations').then(async (answer) => {
    const found = await answer.json();
    if (answer.ok) memory.relations = found;
    else memory.trouble = found.detail;
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
}
