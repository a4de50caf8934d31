// The log of a process, as it is written.

import { h } from '../dom.js';
import { listen } from '../stream.js';

const KEPT = 2000;

export function log([name], memory) {
  if (!memory.lines) {
    Object.assign(memory, { lines: [], number: 0, file: '', trouble: '', filter: '' });
    memory.leave = () => memory.listening.close();
    memory.listening = listen(`/v1/console/live/logs/${encodeURIComponent(name)}`, {
      log: (found) => { memory.file = found.file; memory.lines = []; memory.changed(); },
      lines: (found) => {
        memory.lines = [...memory.lines, ...found.map((text) => ({ number: (memory.number += 1), text }))].slice(-KEPT);
        memory.changed();
      },
    }, { onCut: () => { memory.changed(); } });
  }
  const wanted = memory.filter.toLowerCase();
  const shown = memory.lines.filter((each) => each.text.toLowerCase().includes(wanted)).reverse();
  return [
    h('h1', {}, 'Log of ', name),
    h('p', { class: 'bar' }, h('input', { class: 'filter', type: 'search', 'aria-label': 'Find in the log', placeholder: 'Find in the log  ( / )', value: memory.filter, oninput: (event) => { memory.filter = event.target.value; memory.changed(); } }), h('span', { class: 'quiet' }, 'Newest on top. ', memory.file)),
    h('ol', { class: 'log', tabindex: 0, 'aria-label': `Log of ${name}` }, shown.map((each) => h('li', { key: String(each.number), class: tone(each.text) }, each.text))),
    !memory.lines.length && h('p', { class: 'quiet' }, 'Nothing is written in it yet.'),
  ];
}

const tone = (text) => (/\b(ERROR|CRITICAL|Traceback)\b|^error: /.test(text) ? 'bad' : /\bWARNING\b/.test(text) ? 'warn' : '');
