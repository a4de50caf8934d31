// Live queries: what clients may follow, how much work it is, and a box to follow one here.

import { h, link } from '../dom.js';
import { count, rate } from '../format.js';
import { state } from '../live.js';
import { table } from '../lists.js';
import { listen } from '../stream.js';

const KEPT = 200;
const SIGNS = { add: '+', change: '~', changeIndex: '>', remove: '−' };
const kept = { name: '', query: '' };

export function liveQueries(words, memory) {
  if (!memory.asked) {
    Object.assign(memory, { asked: true, found: null, messages: [], number: 0, documents: null, problem: null, listening: null });
    memory.restarted = () => load(memory);
    memory.leave = () => memory.listening?.close();
    load(memory);
  }
  const head = h('h1', {}, 'Live queries');
  if (!memory.found) return [head, h('p', { class: 'quiet' }, memory.trouble ?? 'Asking the run…')];
  if (!memory.found.length) return [head, h('p', { class: 'quiet' }, 'No gateway of this application offers live queries.')];
  return [head, h('p', {}, h('button', { type: 'button', onclick: () => load(memory) }, 'Look again')), all(memory.found), h('h2', {}, 'Follow one'), box(memory), followed(memory)];
}

function all(found) {
  return table(['Live queries', 'Over', '#Registered', '#Cells', '#Meets writes', '#Matches', '#News', '#Behind', 'Lease', 'Rule'], found.map((each) => {
    const matching = sum(each.matching);
    const telling = sum(each.telling);
    return {
      key: each.live,
      cells: [[each.live, h('small', {}, `offered by ${each.gateways.join(', ')}`)], link(['topics', each.table], {}, each.table), count(each.registered), [count(each.cells), h('small', {}, `${count(each.rows)} rows × ${count(each.columns)} columns`)],
        rate(matching.in), rate(matching.out), rate(telling.out), count(matching.lag + telling.lag), each.lease, each.rule ? h('code', {}, each.rule) : 'every row'],
    };
  }), { label: 'Live queries' });
}

function sum(names) {
  const parts = (state.now?.parts ?? []).filter((each) => names.includes(each.part));
  return parts.reduce((all, each) => ({ in: all.in + each.rate_in, out: all.out + each.rate_out, lag: all.lag + (each.lag ?? 0) }), { in: 0, out: 0, lag: 0 });
}

function box(memory) {
  kept.name ||= memory.found[0].live;
  return h('form', { onsubmit: (event) => { event.preventDefault(); follow(memory); } },
    memory.found.length > 1 && h('label', { class: 'wide' }, 'Of', h('select', { onchange: (event) => { kept.name = event.target.value; } }, memory.found.map((each) => h('option', { value: each.live, key: each.live }, each.live)))),
    h('label', { class: 'wide' }, 'A filter, or a query as JSON; empty: everything', h('textarea', { name: 'query', rows: 2, spellcheck: 'false', autocomplete: 'off', placeholder: "list = 'home' and not done", value: kept.query, oninput: (event) => { kept.query = event.target.value; } })),
    h('p', { class: 'bar' }, h('button', { type: 'submit' }, 'Follow'), h('button', { type: 'button', disabled: !memory.listening, onclick: () => { stop(memory); memory.changed(); } }, 'Stop'), h('span', { class: 'quiet', role: 'status' }, memory.listening ? (memory.documents === null ? 'Waiting for the result…' : `Following; ${count(memory.number)} changes so far`) : '')),
    memory.problem && h('p', { class: 'note bad', role: 'alert' }, memory.problem.detail, memory.problem.allowed && ` · ${memory.problem.allowed}`));
}

function followed({ messages, documents }) {
  return [
    messages.length > 0 && [h('h3', {}, 'Changes, the newest on top'), h('ol', { class: 'records' }, messages.map((each) => h('li', { key: String(each.number) }, h('b', {}, `${SIGNS[each.what] ?? each.what} `), h('code', {}, JSON.stringify(each.document)))))],
    documents !== null && [h('h3', {}, `The first result: ${count(documents.length)} documents`), h('ol', { class: 'records' }, documents.map((each, place) => h('li', { key: String(place) }, h('code', {}, JSON.stringify(each)))))],
  ];
}

function follow(memory) {
  stop(memory);
  Object.assign(memory, { messages: [], documents: null, problem: null, number: 0 });
  const first = [];
  memory.listening = listen(`/v1/console/live/queries/${encodeURIComponent(kept.name)}?query=${encodeURIComponent(kept.query)}`, {
    began: () => { first.length = 0; },
    message: (found) => {
      if (found.type === 'first') first.push(...found.documents.slice(0, KEPT - first.length));
      else if (found.type === 'ready') memory.documents = [...first];
      else if (found.type === 'must-refetch') first.length = 0;
      else if (found.type === 'error') memory.problem = found.problem;
      else if (found.type === 'changes') {
        const fresh = found.events.map((each) => ({ ...each, number: (memory.number += 1) })).reverse();
        memory.messages = [...fresh, ...memory.messages].slice(0, KEPT);
      }
      memory.changed();
    },
    trouble: (found) => { memory.problem = found; memory.changed(); },
    problem: (found) => { stop(memory); memory.problem = found; memory.changed(); },
  });
  memory.changed();
}

function stop(memory) {
  memory.listening?.close();
  memory.listening = null;
}

function load(memory) {
  fetch('/v1/console/live-queries').then(async (answer) => {
    const found = await answer.json();
    if (answer.ok) memory.found = found;
    else memory.trouble = found.detail;
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
}
