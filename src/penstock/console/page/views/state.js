// The state of running services, asked from the workers that own it.

import { h, link } from '../dom.js';
import { count, span } from '../format.js';
import { table } from '../lists.js';

export function state([name], memory) {
  if (!memory.begun) {
    Object.assign(memory, { begun: true, prefix: '', key: null, trouble: '' });
    memory.restarted = () => ask(name, memory);
    ask(name, memory);
  }
  const head = h('h1', {}, name === undefined ? 'State' : ['State ', link(['state'], {}, name)]);
  const trouble = memory.trouble && h('p', { class: 'note', role: 'status' }, memory.trouble);
  return name === undefined ? [head, trouble, all(memory)] : [head, fields(name, memory), trouble, values(memory)];
}

function all({ found }) {
  if (!found) return h('p', { class: 'quiet' }, 'Asking the workers…');
  return table(['State', 'Kind', '#Tasks', '#Running', '#Keys', '#At most so old', 'Workers', 'Kept in'], found.map((each) => ({ key: each.state, cells: [link(['state', each.state], { class: 'name' }, each.state), each.kind, count(each.tasks), h('span', { class: each.running < each.tasks ? 'warn' : '' }, count(each.running)), [count(each.keys_of_service), found.filter((other) => other.service === each.service).length > 1 && h('small', {}, `in all of ${each.service}`)], each.stale_seconds === null ? 'not known' : span(each.stale_seconds), each.workers.join(', '), link(['topics', each.changelog], {}, each.changelog)] })), { label: 'States', empty: 'No service of this application keeps state.' });
}

function fields(name, memory) {
  return h('form', { class: 'fields', onsubmit: (event) => { event.preventDefault(); memory.key = null; ask(name, memory); } },
    h('label', {}, 'Keys that begin with', h('input', { type: 'text', name: 'prefix', autocomplete: 'off', spellcheck: 'false', value: memory.prefix, oninput: (event) => { memory.prefix = event.target.value; } })),
    h('button', { type: 'submit' }, 'Look'),
    h('button', { type: 'button', title: 'the value of exactly this key, from the worker that owns it', onclick: () => { memory.key = memory.prefix; ask(name, memory); } }, 'Look up this key'));
}

function values({ found, prefix, key }) {
  if (found && found.task !== undefined) {
    const [row] = found.rows;
    const age = found.stale_seconds === null ? 'of unknown age' : `at most ${span(found.stale_seconds)} old`;
    return [h('p', { class: 'quiet' }, `Task ${found.task}, owned by the worker at ${found.worker}; ${age}.`), row ? h('pre', { class: 'code' }, JSON.stringify(row.value, null, 1)) : h('p', {}, 'It has no value for the key ', h('b', {}, key ?? prefix), '.')];
  }
  if (!found) return h('p', { class: 'quiet' }, 'Asking the workers…');
  return [
    h('p', { class: 'quiet' }, found.more ? `The first ${count(found.rows.length)} keys; write how a key begins to see others.` : `${count(found.rows.length)} keys.`, found.stale_seconds === null ? ' Of unknown age.' : ` At most ${span(found.stale_seconds)} old.`),
    table(['Key', 'Value'], found.rows.map((each) => ({ key: each.key, cells: [each.key, h('code', {}, typeof each.value === 'string' ? each.value : JSON.stringify(each.value))] })), { label: 'Values', empty: prefix ? 'No key begins so.' : 'It is empty.' }),
  ];
}

function ask(name, memory) {
  const path = name === undefined ? 'states' : `states/${encodeURIComponent(name)}?${memory.key === null ? 'prefix' : 'key'}=${encodeURIComponent(memory.key ?? memory.prefix)}`;
  fetch(`/v1/console/${path}`).then(async (answer) => {
    const found = await answer.json();
    memory.trouble = answer.ok ? '' : `It cannot be told now: ${found.detail}`;
    if (answer.ok) memory.found = found;
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
}
