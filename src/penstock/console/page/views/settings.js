// The settings of the run, each with where its value comes from.

import { h } from '../dom.js';
import { filter, matches, table } from '../lists.js';

export function settings(words, memory) {
  if (!memory.asked) {
    memory.asked = true;
    memory.restarted = () => load(memory);
    load(memory);
  }
  if (!memory.found) return [h('h1', {}, 'Settings'), h('p', { class: 'quiet' }, memory.trouble ?? 'Asking the run…')];
  const shown = memory.found.filter((each) => matches(memory, each.key, each.help, each.where));
  return [
    h('h1', {}, 'Settings'),
    h('p', { class: 'bar' }, filter(memory, 'Find a setting'), h('span', { class: 'quiet' }, `${memory.found.filter((each) => each.layer !== 'default').length} of ${memory.found.length} are not as by default`)),
    table(['Setting', 'Value', 'From', 'What it is'], shown.map((each) => ({
      key: each.key,
      cells: [each.key, h('code', {}, text(each.value)), [h('span', { class: each.layer === 'default' ? 'quiet' : 'some' }, each.where), each.overrode.map((past) => h('small', {}, `instead of ${text(past.value)} from ${past.where}`))], h('span', { class: 'words' }, each.help)],
    })), { label: 'Settings', empty: 'There is no such setting.' }),
  ];
}

const text = (value) => (typeof value === 'string' ? value || '(empty)' : JSON.stringify(value));

function load(memory) {
  fetch('/v1/console/settings').then(async (answer) => { memory.found = await answer.json(); }).catch(() => { memory.trouble = 'They did not come; they are asked for again when the run is back.'; }).finally(memory.changed);
}
