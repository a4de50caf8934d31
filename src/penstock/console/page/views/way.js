// The way of one record: where its key came behind it, how long that took, what became of it.

import { h, link } from '../dom.js';
import { count, span } from '../format.js';
import { drawing, load } from './topology.js';

export function way([topic, partition, offset], memory) {
  if (!memory.graph) {
    memory.graph = { nodes: [], edges: [] };
    memory.restarted = () => load(memory);
    load(memory);
    ask(memory, topic, partition, offset);
  }
  const place = `${topic}[${partition}]@${offset}`;
  const head = [h('h1', {}, 'The way of ', link(['tail', topic, partition], {}, place)), h('p', {}, h('button', { type: 'button', onclick: () => ask(memory, topic, partition, offset) }, 'Look again'))];
  if (!memory.found) return [head, h('p', { class: memory.trouble ? 'note bad' : 'quiet', role: 'status' }, memory.trouble ?? 'Looking for it…')];
  const { record, steps, dead_letters: letters, node, within_seconds: within } = memory.found;
  const reached = steps.filter((each) => each.records.length);
  const lit = new Set([node, ...reached.flatMap((each) => [each.node, ...each.through]), ...letters.map((each) => each.part)]);
  return [
    head,
    h('ol', { class: 'way' },
      h('li', { key: 'first' }, h('p', {}, h('strong', {}, topic), ' ', h('span', { class: 'quiet' }, record.at ?? '')), h('p', {}, 'key ', h('b', {}, record.key ?? h('i', {}, 'none')), ' '), value(record)),
      letters.map((each, number) => h('li', { key: `letter ${number}`, class: 'odd' }, h('p', {}, h('strong', {}, `${each.part}: a dead letter`), ` ${each.code}`), h('p', { class: 'why' }, each.reason))),
      reached.map((each) => h('li', { key: each.node }, h('p', {}, h('span', { class: 'after' }, `+${span(each.records[0].after_seconds)}`), ' ', each.through.map((name, number) => [number ? ' › ' : '', link(['part', name], {}, name)]), ' › ', h('strong', {}, link(['topics', each.topic], {}, each.topic))),
        each.records.map((found) => h('div', { key: `${found.partition} ${found.offset}` }, h('p', { class: 'quiet' }, `+${span(found.after_seconds)} `, link(['way', each.topic, String(found.partition), String(found.offset)], {}, `${found.partition}@${found.offset}`)), value(found)))))),
    h('p', { class: 'quiet' }, record.key === null ? 'It has no key: what came of it cannot be told from other records.' : `Shown are records of the same key that were written within ${span(within)} behind it; later ones of the key may be among them. A part that gives records another key ends the way.`,
      steps.some((each) => !each.whole) && ` Of busy topics only the first ${count(Math.max(...steps.map((each) => each.looked)))} records were looked at.`),
    graphOf(memory, lit),
  ];
}

const value = (record) => h('code', {}, record.value === null ? 'null (deleted)' : typeof record.value === 'string' ? record.value : JSON.stringify(record.value));
const graphOf = (memory, lit) => memory.graph.nodes.length > 0 && drawing(memory.graph, lit);

function ask(memory, ...place) {
  memory.found = null;
  memory.trouble = null;
  fetch(`/v1/console/ways/${place.map(encodeURIComponent).join('/')}`).then(async (answer) => {
    const found = await answer.json();
    if (answer.ok) memory.found = found;
    else memory.trouble = found.detail;
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
  memory.changed();
}
