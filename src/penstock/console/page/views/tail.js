// The records of a topic as they come: newest on top, filtered, paused, gone on with.

import { act, hasKey, words } from '../acting.js';
import { h, link } from '../dom.js';
import { count } from '../format.js';
import { state } from '../live.js';
import { listen } from '../stream.js';

const KEPT = 500;
const SHOWN = 200;
const FIELDS = [
  ['where', 'Where', "celsius > 30 and device <> 'a'", 'a condition in the expression language'],
  ['find', 'Contains', 'a regular expression', 'a regular expression for key and value'],
  ['key', 'Key', 'as it is on the log', 'the whole key'],
  ['partition', 'Partitions', '0,3', 'numbers with commas'],
  ['from', 'From', '-50, earliest, 1234, 5m', 'earliest, latest, an offset, -N, an instant, or a time ago'],
];

export function tail([topic, partition], memory) {
  if (topic === undefined) return [h('h1', {}, 'Records'), h('p', {}, 'Choose one of the ', link(['topics'], {}, 'topics'), '.')];
  if (!memory.records) {
    Object.assign(memory, { records: [], waiting: [], passed: 0, left: 0, query: partition === undefined ? {} : { partition }, paused: false, problem: null, typed: true });
    memory.leave = () => memory.listening?.close();
    memory.key = (event) => { if (event.key === 'p') pause(memory); };
    begin(topic, memory);
  }
  const { records, problem } = memory;
  return [
    h('h1', {}, 'Records of ', link(['topics', topic], {}, topic)),
    h('form', { class: 'fields', onsubmit: (event) => { event.preventDefault(); begin(topic, memory); } },
      FIELDS.filter(([name]) => name !== 'where' || memory.typed).map(([name, label, example, title]) => h('label', { key: name, title }, label,
        h('input', { name, type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: example, value: memory.query[name] ?? '', oninput: (event) => { memory.query[name] = event.target.value; } }))),
      h('button', { type: 'submit' }, 'Show'),
      h('button', { type: 'button', 'aria-pressed': String(memory.paused), onclick: () => pause(memory) }, memory.paused ? 'Go on' : 'Pause', ' (p)')),
    memory.typed && state.about?.writes && hasKey() && writing(topic, memory),
    problem && h('p', { class: 'note bad', role: 'alert' }, problem.detail, problem.allowed && ` Allowed: ${problem.allowed}`),
    h('p', { class: 'quiet', role: 'status' }, memory.paused ? `Paused; ${count(memory.waiting.length + memory.left)} have come since.` : `Newest on top; ${count(records.length)} kept, ${count(memory.passed)} passed by.`),
    !records.length && !problem && h('p', { class: 'quiet' }, 'No record yet.'),
    h('ol', { class: 'records' }, records.slice(0, SHOWN).map((each) => h('li', { key: `${each.partition}@${each.offset}`, class: each.problem ? 'odd' : '' },
      h('div', { class: 'where' }, h('time', {}, each.at ? each.at.replace('T', ' ').replace(/\.(\d{3}).*/, '.$1') : ''), ' ', link(['way', topic, String(each.partition), String(each.offset)], { title: 'Where it went' }, `${each.partition}@${each.offset}`), ' ', h('b', {}, each.key === null ? h('i', {}, 'no key') : each.key)),
      each.problem && h('div', { class: 'why' }, each.problem),
      h('code', {}, each.value === null ? 'null (deleted)' : typeof each.value === 'string' ? each.value : JSON.stringify(each.value), each.cut && ` … cut, ${count(each.cut)} characters`),
      Object.keys(each.headers).length > 0 && h('details', {}, h('summary', {}, 'headers'), h('code', {}, JSON.stringify(each.headers)))))),
  ];
}

function pause(memory) {
  memory.paused = !memory.paused;
  if (!memory.paused) {
    add(memory, memory.waiting);
    memory.waiting = [];
    memory.left = 0;
  }
  memory.changed();
}

function begin(topic, memory) {
  memory.listening?.close();
  Object.assign(memory, { records: [], waiting: [], passed: 0, left: 0, problem: null });
  const words = Object.entries(memory.query).filter(([, text]) => text.trim()).map(([name, text]) => `${name}=${encodeURIComponent(text.trim())}`);
  memory.listening = listen(`/v1/console/live/tail/${encodeURIComponent(topic)}?${words.join('&')}`, {
    tail: (found) => { memory.typed = found.typed; memory.changed(); },
    problem: (found) => { memory.problem = found; memory.listening.close(); memory.changed(); },
    records: (found) => {
      memory.passed += found.passed;
      if (memory.paused) {
        const room = Math.max(0, KEPT - memory.waiting.length);
        memory.waiting.push(...found.records.slice(0, room));
        memory.left += Math.max(0, found.records.length - room);
      } else add(memory, found.records);
      memory.changed();
    },
  });
  memory.changed();
}

// A connection that came back begins again: what is there already is not shown twice.
function add(memory, found) {
  const known = new Set(memory.records.map((each) => `${each.partition}@${each.offset}`));
  const fresh = found.filter((each) => !known.has(`${each.partition}@${each.offset}`)).reverse();
  memory.records = [...fresh, ...memory.records].slice(0, KEPT);
}

// One record by hand, checked by the type of its stream before it is written.
function writing(topic, memory) {
  const write = (memory.write ??= { text: '', said: null, problem: null, busy: false });
  const send = async () => {
    Object.assign(write, { busy: true, said: null, problem: null });
    memory.changed();
    try {
      let value;
      try {
        value = JSON.parse(write.text);
      } catch (error) {
        throw { detail: `It is no JSON: ${error.message}` };
      }
      write.said = await act(`records/${encodeURIComponent(topic)}`, { value });
    } catch (problem) {
      write.problem = problem;
    }
    write.busy = false;
    memory.changed();
  };
  return h('details', { class: 'write' }, h('summary', {}, 'Write a test record'),
    h('label', { class: 'wide' }, 'Its value as JSON; the key is taken from it',
      h('textarea', { rows: 3, spellcheck: 'false', autocomplete: 'off', value: write.text, oninput: (event) => { write.text = event.target.value; } })),
    h('p', { class: 'bar' }, h('button', { type: 'button', disabled: write.busy, onclick: send }, 'Write it'),
      write.said && h('span', { role: 'status' }, 'It stands at ', link(['way', topic, String(write.said.partition), String(write.said.offset)], {}, `${write.said.partition}@${write.said.offset}`), '; every part that reads the stream gets it.')),
    write.problem && h('p', { class: 'note bad', role: 'alert' }, words(write.problem)));
}
