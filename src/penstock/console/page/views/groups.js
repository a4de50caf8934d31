// Groups of consumers: their members, and how far they are behind in each partition.

import { spark } from '../charts.js';
import { h, link } from '../dom.js';
import { count } from '../format.js';
import { filter, matches, stale, table, waiting } from '../lists.js';
import { watch } from '../stream.js';

export function groups([name], memory) {
  return name === undefined ? all(memory) : one(name, memory);
}

function all(memory) {
  watch(memory, 'groups');
  if (!memory.document) return waiting(memory, 'Groups');
  const found = memory.document.groups;
  const shown = found.filter((each) => matches(memory, each.group, ...each.topics));
  return [
    h('h1', {}, 'Groups'), stale(memory),
    h('p', { class: 'bar' }, filter(memory, 'Find a group or a topic'), h('span', { class: 'quiet' }, `${shown.length} of ${found.length}. Pipelines keep their positions in checkpoints: see their parts.`)),
    table(['Group', 'State', '#Members', '#Partitions', '#Lag', '#Worst partition', 'Topics'], shown.map((each) => ({
      key: each.group,
      cells: [link(['groups', each.group], { class: 'name' }, each.group), each.state, count(each.members), count(each.partitions), count(each.lag), count(each.worst), each.topics.map((topic, place) => [place ? ', ' : '', link(['topics', topic], {}, topic)])],
    })), { label: 'Groups', empty: 'There is no such group.' }),
  ];
}

function one(name, memory) {
  watch(memory, `groups/${name.split('/').map(encodeURIComponent).join('/')}`);
  if (!memory.document) return waiting(memory, name);
  const group = memory.document;
  const lag = group.partitions.reduce((sum, each) => sum + (each.lag ?? 0), 0);
  return [
    h('h1', {}, group.group), stale(memory),
    h('p', { class: 'quiet' }, `${group.state} · ${count(group.members.length)} members · ${count(group.partitions.length)} partitions · lag ${count(lag)}`),
    h('h2', {}, 'Lag by partition'),
    table(['Partition', '#Committed', '#End', '#Lag', 'While somebody looked', 'Member'], group.partitions.map((each) => ({
      key: `${each.topic} ${each.partition}`,
      cells: [[link(['topics', each.topic], {}, each.topic), ` ${each.partition}`], count(each.committed), count(each.end), count(each.lag), spark(group.times, each.history, { what: 'lag', show: count }), each.member ?? h('span', { class: 'quiet' }, 'nobody')],
    })), { label: 'Partitions' }),
    h('h2', {}, 'Members'),
    table(['Member', 'Client', 'Host', '#Partitions'], group.members.map((each) => ({ key: each.id, cells: [each.id, each.client, each.host, count(each.partitions)] })), { label: 'Members', empty: 'It has no members now: nobody reads for it.' }),
  ];
}
