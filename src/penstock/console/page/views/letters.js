// Dead letters by reason, with what they hold.

import { act, hasKey, words as problemWords } from '../acting.js';
import { h, link } from '../dom.js';
import { bytes, count } from '../format.js';
import { state } from '../live.js';
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
      h('h2', {}, link(['part', each.part], {}, each.part || 'unknown'), ' ', h('span', { class: 'badge warn' }, each.code), ' ', count(each.count), each.given_back > 0 && h('span', { class: 'quiet' }, `, ${count(each.given_back)} of them given back`)),
      h('p', { class: 'quiet' }, `first ${when(each.first_at)}, last ${when(each.last_at)}`),
      h('p', { class: 'why' }, each.newest[0]?.reason),
      h('details', {}, h('summary', {}, `the newest ${each.newest.length}`), h('ol', { class: 'records' }, each.newest.map((letter) =>
        h('li', { key: `${letter.topic} ${letter.partition} ${letter.offset} ${letter.at}` },
          h('div', { class: 'where' }, when(letter.at), ' ', link(['way', letter.topic, String(letter.partition), String(letter.offset)], {}, `${letter.topic}[${letter.partition}]@${letter.offset}`), h('b', {}, letter.key ?? h('i', {}, 'no key')), letter.is_given_back && h('span', { class: 'badge' }, ' given back'), letter.failed_again > 0 && h('span', { class: 'badge warn' }, ` failed again after it was given back ${count(letter.failed_again)}×`)),
          h('div', { class: 'why' }, letter.reason),
          h('code', {}, letter.value ?? 'null'), letter.cut && h('small', {}, `cut; ${bytes(letter.bytes)} in all`))))),
      each.part && giving(each, memory))),
  ];
}

// First what would happen, then the same done.
function giving(reason, memory) {
  const name = `${reason.part} ${reason.code}`;
  const tried = (memory.tried ??= {})[name];
  const choice = { part: reason.part, code: reason.code };
  const back = tried?.found?.counts.back ?? 0;
  return h('div', { class: 'giving' },
    h('p', { class: 'bar' },
      h('button', { type: 'button', disabled: tried?.busy, onclick: () => run(memory, name, () => ask(choice)) }, 'Try to give them back'),
      back > 0 && !tried.done && (state.about?.writes && hasKey() ?
        h('button', { type: 'button', class: 'strong', disabled: tried.busy, onclick: () => run(memory, name, () => act('give-back', choice), true) }, `Give ${count(back)} back now`) :
        h('span', { class: 'quiet' }, state.about?.writes ? 'This page has not the key of the run: open the link that it prints. Or in a terminal: ' : 'This console only reads. In a terminal: ', h('code', {}, `penstock dead-letters --part ${reason.part} --code ${reason.code} --give-back --yes`)))),
    tried?.busy && h('p', { class: 'quiet', role: 'status' }, 'Reading the dead letters…'),
    tried?.problem && h('p', { class: 'note bad', role: 'alert' }, problemWords(tried.problem)),
    tried?.found && outcome(tried));
}

function outcome({ found, done }) {
  const { counts, words, examples, to, readers } = found;
  const lines = Object.entries(counts).filter(([, number]) => number > 0);
  if (!lines.length) return h('p', { class: 'quiet' }, 'There are none of these any more.');
  return h('div', { class: `note ${done ? 'good' : ''}`, role: 'status' },
    h('p', {}, h('strong', {}, done ? 'Done.' : 'Nothing was written yet.'), found.more && ' There are more: do it again.'),
    h('ul', {}, lines.map(([verdict, number]) => h('li', { key: verdict }, `${count(number)} `, done && verdict === 'back' ? 'went back' : words[verdict], examples[verdict]?.[0]?.why && h('small', {}, `such as ${examples[verdict][0].record}: ${examples[verdict][0].why}`)))),
    Object.entries(to).map(([stream, number]) => h('p', { key: stream }, `${count(number)} records ${done ? 'went' : 'would go'} to the end of `, h('b', {}, stream), `. Every part that reads it gets them once more: ${readers[stream].join(', ')}.`)));
}

async function ask(choice) {
  const answer = await fetch(`/v1/console/give-back?${Object.entries(choice).map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')}`);
  const found = await answer.json();
  if (!answer.ok) throw found;
  return found;
}

function run(memory, name, ask, done = false) {
  memory.tried[name] = { busy: true };
  memory.changed();
  ask().then((found) => {
    memory.tried[name] = { found, done };
    if (done) memory.listening.again();
  }, (problem) => { memory.tried[name] = { problem }; }).finally(memory.changed);
}
