// Windows with their panes as they came, and the late ledger by how late.

import { bars } from '../charts.js';
import { h, link } from '../dom.js';
import { count, span } from '../format.js';
import { stale, table, waiting } from '../lists.js';
import { listen, watch } from '../stream.js';

const TONES = { early: 'early', on_time: 'on-time', late: 'late' };
const WORDS = { early: 'early', on_time: 'on time', late: 'late', withdrawn: 'withdrawn' };

export function windows([name], memory) {
  return name === undefined ? all(memory) : one(name, memory);
}

function all(memory) {
  if (!memory.asked) {
    memory.asked = true;
    memory.restarted = () => load(memory);
    load(memory);
  }
  watch(memory, 'late');
  return [
    h('h1', {}, 'Windows'),
    memory.found ? table(['Panes of', 'Filled by', 'What', ''], memory.found.map((each) => ({
      key: each.data,
      cells: [link(['windows', each.topic], { class: 'name' }, each.data), link(['part', each.part], {}, each.part), h('span', { class: 'words' }, each.what), link(['windows', each.topic], { 'aria-label': `Panes of ${each.data}` }, 'look')],
    })), { label: 'Windows', empty: 'No part of this application computes windows.' }) : h('p', { class: 'quiet' }, memory.trouble ?? 'Asking the run…'),
    h('h2', {}, 'Late ledger'), ledger(memory),
  ];
}

function ledger(memory) {
  const found = memory.document;
  if (!found) return h('p', { class: 'quiet' }, memory.trouble?.detail ?? 'Asking the log…');
  if (!found.there) return h('p', { class: 'quiet' }, 'No window of this application can refuse a record, so there is no ledger.');
  if (!found.newest.length) return h('p', {}, 'It is empty: every record came in time for its windows.');
  return [
    h('p', { class: 'quiet' }, 'Records that no window took any more, each kept with its place.', found.unreadable > 0 && ` ${count(found.unreadable)} entries cannot be read.`),
    bars(found.by_how_late.map((each) => [each.late, each.count]), { what: 'how late, by the watermark' }),
    table(['Part', 'Why', '#Entries'], found.parts.map((each) => ({ key: `${each.part} ${each.reason}`, cells: [each.part, reason(each.reason), count(each.count)] })), { label: 'Late records by part' }),
    h('h2', {}, 'The newest late records'),
    table(['Record', 'Group', 'Event time', '#Late by', 'Window', 'Why'], found.newest.map((each) => ({
      key: `${each.part} ${each.topic} ${each.partition} ${each.offset} ${each.window_start}`,
      cells: [link(['way', each.topic, String(each.partition), String(each.offset)], {}, `${each.topic}[${each.partition}]@${each.offset}`), h('code', {}, each.group), when(each.happened_at), span(Math.abs(each.late_by_seconds)), bounds(each.window_start, each.window_end), reason(each.reason)],
    })), { label: 'The newest late records' }),
  ];
}

const reason = (name) => ({ expired: 'the lateness is over', closed: 'the trigger has finished', ahead: 'too far in the future' })[name] ?? name;
const when = (text) => (typeof text === 'string' ? text.replace('T', ' ').replace(/\.0+Z?$/, '').replace(/Z$|\+00:00$/, '') : text);
const bounds = (start, end) => (start === null || start === undefined ? 'everything' : `${when(start)} to ${when(end)}`);

function one(name, memory) {
  memory.key ??= '';
  if (!memory.listening) begin(name, memory);
  const head = h('h1', {}, 'Windows of ', link(['topics', name], {}, name));
  if (!memory.document) return memory.trouble ? waiting(memory, `Windows of ${name}`) : [head, h('p', { class: 'quiet', role: 'status' }, 'Reading the panes…')];
  const { windows: found, kinds } = memory.document;
  return [
    head, stale(memory),
    h('form', { class: 'fields', onsubmit: (event) => { event.preventDefault(); memory.listening.close(); begin(name, memory); } },
      h('label', {}, 'Only keys that contain', h('input', { type: 'text', name: 'key', autocomplete: 'off', spellcheck: 'false', value: memory.key, oninput: (event) => { memory.key = event.target.value; } })), h('button', { type: 'submit' }, 'Show')),
    h('p', { class: 'quiet' }, `${count(found.length)} windows, the one with the newest pane on top. Panes: `, Object.entries(kinds).map(([kind, number], place) => `${place ? ', ' : ''}${count(number)} ${WORDS[kind] ?? kind}`).join('') || 'none yet', '.'),
    found.map((each) => h('section', { key: `${each.key} ${each.start} ${each.end}`, class: 'card' },
      h('h2', {}, each.key || h('i', {}, 'no key'), ' ', h('span', { class: 'quiet' }, bounds(each.start, each.end))),
      each.came > each.panes.length && h('p', { class: 'quiet' }, `${count(each.came)} panes came; the newest ${each.panes.length}:`),
      h('ol', { class: 'panes' }, each.panes.map((pane) => h('li', { key: `${pane.partition} ${pane.offset}`, class: `${TONES[pane.pane] ?? ''} ${pane.withdrawn ? 'withdrawn' : ''}` },
        h('span', { class: 'kind' }, pane.withdrawn ? 'withdrawn' : WORDS[pane.pane] ?? String(pane.pane)), h('span', { class: 'quiet' }, ` ${pane.pane_index ?? ''}${pane.pane_last ? ', the last' : ''} `),
        h('time', { class: 'quiet' }, pane.written_at ? when(pane.written_at).slice(11, 23) : ''), ' ', h('code', {}, typeof pane.results === 'string' ? pane.results : JSON.stringify(pane.results))))))),
    !found.length && h('p', { class: 'quiet' }, memory.key ? 'No such key has panes among the newest records.' : 'No pane has come yet.'),
  ];
}

function begin(name, memory) {
  Object.assign(memory, { document: null, trouble: null });
  memory.listening = listen(`/v1/console/live/windows/${encodeURIComponent(name)}?key=${encodeURIComponent(memory.key)}`, {
    now: (found) => { memory.document = found; memory.trouble = null; memory.changed(); },
    trouble: (found) => { memory.trouble = found; memory.changed(); },
  });
  memory.leave = () => memory.listening.close();
}

function load(memory) {
  fetch('/v1/console/windows').then(async (answer) => {
    const found = await answer.json();
    if (answer.ok) memory.found = found;
    else memory.trouble = found.detail;
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
}
