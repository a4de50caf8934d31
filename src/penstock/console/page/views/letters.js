// Dead letters by reason, with what they hold.

import { h, link } from '../dom.js';
import { bytes, count } from '../format.js';
import { stale, waiting } from '../lists.js';
import { watch } from '../stream.js';

const when = (text) => text.replace('T', ' ').replace(/\.\d+/, '').replace('+00:00', ' UTC');

export function letters(words, memory) {
  watch(memory, 'dead-letters');
  if (!memory.document) return waiting(memory, 'Dead letters');
  const { reasons, read, more, topic } = memory.document;
  if (!read && !more) return [h('h1', {}, 'Dead letters'), stale(memory), h('p', {}, 'There are none: every record could be used.')];
  return [
    h('h1', {}, 'Dead letters'), stale(memory),
    h('p', { class: 'quiet' }, more ? `The newest ${count(read)} of ` : `${count(read)} in `, link(['topics', topic], {}, topic), '. Each is the record as it was, kept with its reason.'),
    reasons.map((each) => h('section', { key: `${each.part} ${each.code}`, class: 'card' },
      h('h2', {}, link(['part', each.part], {}, each.part || 'unknown'), ' ', h('span', { class: 'badge warn' }, each.code), ' ', count(each.count)),
      h('p', { class: 'quiet' }, `first ${when(each.first_at)}, last ${when(each.last_at)}`),
      h('p', { class: 'why' }, each.newest[0]?.reason),
      h('details', {}, h('summary', {}, `the newest ${each.newest.length}`), h('ol', { class: 'records' }, each.newest.map((letter) =>
        h('li', { key: `${letter.topic} ${letter.partition} ${letter.offset} ${letter.at}` },
          h('div', { class: 'where' }, when(letter.at), ' ', link(['way', letter.topic, String(letter.partition), String(letter.offset)], {}, `${letter.topic}[${letter.partition}]@${letter.offset}`), h('b', {}, letter.key ?? h('i', {}, 'no key'))),
          h('div', { class: 'why' }, letter.reason),
          h('code', {}, letter.value ?? 'null'), letter.cut && h('small', {}, `cut; ${bytes(letter.bytes)} in all`))))),
      h('p', { class: 'quiet' }, 'In a terminal: ', h('code', {}, `penstock dead-letters --part ${each.part} --code ${each.code} --json`)))),
  ];
}
