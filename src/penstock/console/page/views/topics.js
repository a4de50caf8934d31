// The topics of the log, and one of them: partitions, readers with their lag, schema.

import { h, link } from '../dom.js';
import { bytes, count, rate, short } from '../format.js';
import { facts, filter, matches, stale, table, waiting } from '../lists.js';
import { watch } from '../stream.js';

const READERS = 4;

export function topics([name], memory) {
  return name === undefined ? all(memory) : one(name, memory);
}

function all(memory) {
  watch(memory, 'topics');
  if (!memory.document) return waiting(memory, 'Topics');
  const found = memory.document.topics;
  const shown = found.filter((each) => matches(memory, each.topic, each.is, ...each.readers.map((reader) => reader.group)));
  return [
    h('h1', {}, 'Topics'), stale(memory),
    h('p', { class: 'bar' }, filter(memory, 'Find a topic or a reader'), h('span', { class: 'quiet' }, `${shown.length} of ${found.length}, ${count(found.reduce((sum, each) => sum + each.partitions, 0))} partitions`)),
    table(['Topic', '#Partitions', '#Records', '#Size', '#Rate', 'Kept', 'Readers and their lag', 'Records'], shown.map((each) => ({
      key: each.topic,
      cells: [
        [link(['topics', each.topic], { class: 'name' }, each.topic), each.is && h('small', {}, each.is)],
        count(each.partitions), count(each.records), bytes(each.bytes), each.rate === null ? '–' : rate(each.rate),
        [each.kept, each.kept_bytes && h('small', {}, `${bytes(each.kept_bytes)} a partition`), each.compacted && h('small', {}, 'compacted')], readers(each), link(['tail', each.topic], { 'aria-label': `Records of ${each.topic}` }, 'look'),
      ],
    })), { label: 'Topics', empty: 'No topic has this in its name.' }),
  ];
}

function readers(topic) {
  const found = topic.readers.slice(0, READERS).map((each) => h('div', { key: each.group, class: 'reader' }, link(['groups', each.group], {}, each.group), ' ', h('span', { class: each.lag ? 'some' : 'quiet' }, each.lag ? `lag ${short(each.lag)}` : 'caught up')));
  return [found, topic.readers.length > READERS && h('small', {}, `and ${topic.readers.length - READERS} more`)];
}

function one(name, memory) {
  watch(memory, `topics/${encodeURIComponent(name)}`);
  if (!memory.document) return waiting(memory, name);
  const topic = memory.document;
  const rows = topic.by_partition;
  const lags = rows.map((each) => Math.max(0, ...Object.values(each.lags)));
  return [
    h('h1', {}, topic.topic), stale(memory),
    h('p', { class: 'quiet' }, [topic.is, `${count(topic.partitions)} partitions`, `${count(topic.replication)} replicas`, `${count(topic.records)} records held`, topic.bytes === null ? null : `${bytes(topic.bytes)} on disk`, topic.rate === null ? null : rate(topic.rate), topic.kept === 'for ever' ? 'kept for ever' : `kept ${topic.kept}`, topic.compacted && 'compacted'].filter(Boolean).join(' · ')),
    h('p', {}, link(['tail', topic.topic], { class: 'button' }, 'Look at its records')),
    h('h2', {}, 'Partitions'),
    heat('records held', rows.map((each) => each.records), rows),
    lags.some(Boolean) && heat('lag of the reader that is furthest behind', lags, rows),
    table(['Partition', '#First', '#Next', '#Held', '#Size', '#Rate', '#Worst lag'], rows.map((each, place) => ({ key: String(each.partition), cells: [link(['tail', topic.topic, String(each.partition)], {}, String(each.partition)), count(each.first), count(each.next), count(each.records), bytes(each.bytes), each.rate === null ? '–' : rate(each.rate), count(lags[place])] })), { label: 'Partitions' }),
    h('h2', {}, 'Readers'),
    table(['Group', 'State', '#Lag', '#Worst partition'], topic.readers.map((each) => ({ key: each.group, cells: [link(['groups', each.group], {}, each.group), each.state, count(each.lag), count(each.worst)] })), { label: 'Readers', empty: 'No group has committed an offset here. Pipelines keep theirs in checkpoints.' }),
    h('h2', {}, 'Schema'), schema(topic.schemas),
    h('h2', {}, 'Settings'), facts(Object.entries(topic.config)),
  ];
}

// One square for each partition, the fuller the darker.
function heat(what, values, rows) {
  const most = Math.max(...values, 1);
  const perRow = 50;
  const size = 14;
  const width = Math.min(values.length, perRow) * size;
  return h('figure', { key: what, class: 'heat' }, h('figcaption', {}, `${what}, by partition; at most ${count(Math.max(...values))}`),
    h('svg', { viewBox: `0 0 ${width} ${Math.ceil(values.length / perRow) * size}`, width, height: Math.ceil(values.length / perRow) * size, role: 'img', 'aria-label': `${what} by partition` },
      values.map((value, place) => h('rect', { key: String(place), x: (place % perRow) * size + 1, y: Math.floor(place / perRow) * size + 1, width: size - 2, height: size - 2, rx: 2, 'fill-opacity': (0.08 + 0.92 * (value / most)).toFixed(2) }, h('title', {}, `partition ${rows[place].partition}: ${count(value)}`)))));
}

function schema(versions) {
  const newest = versions.at(-1);
  if (!newest) return h('p', { class: 'quiet' }, 'No application has declared what it holds.');
  return [
    h('p', {}, `${newest.name}, version ${versions.length}${newest.key?.length ? `, key ${newest.key.join(', ')}` : ''}`),
    h('pre', { class: 'code' }, JSON.stringify(newest.fields, null, 1)),
    versions.length > 1 && h('details', {}, h('summary', {}, `${versions.length - 1} earlier`), versions.slice(0, -1).map((each, place) => h('pre', { key: String(place), class: 'code' }, JSON.stringify(each.fields, null, 1)))),
  ];
}
