// The models of an application: versions with their figures, and what its streams say of them.

import { h, link } from '../dom.js';
import { bytes, clock, count } from '../format.js';
import { table } from '../lists.js';

export function models(words, memory) {
  if (!memory.asked) {
    memory.asked = true;
    memory.restarted = () => load(memory);
    load(memory);
  }
  const head = [h('h1', {}, 'Models'), h('p', { class: 'bar' }, h('button', { type: 'button', onclick: () => load(memory) }, 'Look again'), memory.at && h('span', { class: 'quiet', role: 'status' }, `As of ${clock(memory.at)}. New versions are told under what happened.`))];
  if (memory.trouble) return [head, h('p', { class: 'note' }, memory.trouble)];
  if (!memory.found) return [head, h('p', { class: 'quiet' }, 'Asking the log…')];
  const { tables, said } = memory.found;
  if (!tables.length) return [head, h('p', { class: 'quiet' }, 'This application declares no table of ModelVersion.')];
  return [head, tables.map((each) => versions(each)), said.map((each) => stream(each))];
}

function versions({ table: name, topic, used_by: users, versions: found, more, unreadable }) {
  return h('section', { key: name }, h('h2', {}, 'Versions in ', link(['topics', topic], {}, name)),
    h('p', { class: 'quiet' }, users.length ? ['Used by ', users.map((each, place) => [place ? ', ' : '', link(['part', each], {}, each)])] : 'Nothing reads it.', more && ' Only the newest are shown.', unreadable > 0 && ` ${count(unreadable)} cannot be read.`),
    table(['Model', '#Version', 'Published', 'Figures', 'Trained on', '#Size', 'Hash'], found.map((each) => ({
      key: `${each.model} ${each.version}`,
      cells: [each.model, count(each.version), each.published_at ? when(each.published_at) : '–', h('span', { class: 'words' }, Object.entries(each.figures).map(([figure, value]) => `${figure} ${round(value)}`).join(', ') || '–'), h('span', { class: 'words' }, each.trained_on || '–'), bytes(each.bytes), h('code', { title: each.sha256 }, each.sha256.slice(0, 12))],
    })), { label: `Versions in ${name}`, empty: 'No version has been published yet.' }));
}

function stream({ stream: name, topic, newest }) {
  return h('section', { key: `said ${name}` }, h('h2', {}, 'Newest in ', link(['tail', topic], {}, name)),
    newest.length ? h('ol', { class: 'records' }, newest.map((each) => h('li', { key: `${each.partition}@${each.offset}` },
      h('div', { class: 'where' }, each.at ? when(each.at) : '', ' ', link(['way', topic, String(each.partition), String(each.offset)], {}, `${each.partition}@${each.offset}`), each.key !== null && h('b', {}, each.key)),
      h('code', {}, typeof each.value === 'string' ? each.value : JSON.stringify(each.value))))) : h('p', { class: 'quiet' }, 'Nothing yet.'));
}

const when = (text) => text.replace('T', ' ').replace(/\.\d+/, '').replace(/Z$|\+00:00$/, ' UTC');
const round = (value) => (Number.isInteger(value) ? count(value) : Number(value.toPrecision(4)));

function load(memory) {
  fetch('/v1/console/models').then(async (answer) => {
    const found = await answer.json();
    Object.assign(memory, answer.ok ? { found, trouble: '', at: Date.now() / 1000 } : { trouble: `It cannot be told now: ${found.detail}` });
  }).catch(() => { memory.trouble = 'No answer: the run may be away.'; }).finally(memory.changed);
}
