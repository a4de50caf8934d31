// The ways in and out: sources and sinks with their rates, lag, errors and positions.

import { h, link } from '../dom.js';
import { count, rate, span } from '../format.js';
import { state } from '../live.js';
import { badge, lagLine, partLink, rateLine } from '../parts.js';
import { table } from '../lists.js';
import { watch } from '../stream.js';
import { load } from './topology.js';

const KINDS = { source: 'Sources', sink: 'Sinks', gateway: 'Gateways' };

export function connectors(words, memory) {
  if (!memory.graph) {
    memory.graph = { nodes: [], edges: [], waiting: true };
    memory.restarted = () => load(memory);
    load(memory);
  }
  watch(memory, 'connectors');
  const declared = memory.graph.nodes.filter((each) => each.is_part && each.kind in KINDS);
  if (!memory.graph.waiting && !declared.length) return [h('h1', {}, 'Connectors'), h('p', { class: 'quiet' }, 'This application has no source, sink or gateway.')];
  return [h('h1', {}, 'Connectors'), Object.entries(KINDS).map(([kind, title]) => section(kind, title, declared.filter((each) => each.kind === kind), memory))];
}

function section(kind, title, nodes, { graph, document: told }) {
  if (!nodes.length) return null;
  const rows = nodes.flatMap((node) => {
    const parts = (state.now?.parts ?? []).filter((each) => each.part === node.name);
    const data = graph.edges.filter((edge) => (kind === 'sink' ? edge.end : edge.start) === node.name).map((edge) => (kind === 'sink' ? edge.start : edge.end));
    return (parts.length ? parts : [null]).map((part) => row(kind, node, data, part, told?.connectors[node.name]));
  });
  const heads = ['Name', 'State', kind === 'sink' ? '#Read' : '#In', kind === 'sink' ? '#Written' : '#Out', '#Lag', 'Last hour', '#Dead letters', '#Restarts', 'Position and facts'];
  return h('section', { key: kind }, h('h2', {}, title), table(heads, rows, { label: title }));
}

function row(kind, node, data, part, place) {
  const name = [part ? partLink(part) : node.name, h('small', { class: 'words' }, node.what), h('small', {}, kind === 'sink' ? 'from ' : 'into ', data.map((each, place) => [place ? ', ' : '', link(['topics', each], {}, each)]))];
  if (!part) return { key: node.name, cells: [name, h('span', { class: 'quiet' }, 'does not run here'), '–', '–', '–', '', '–', '–', positions(place)] };
  return {
    key: part.key,
    cells: [
      name, [badge(part.state), h('small', {}, `for ${span(part.since_seconds)}`), part.why && h('small', { class: 'words bad' }, part.why)],
      rate(part.rate_in), rate(part.rate_out), part.lag === null ? '–' : [count(part.lag), part.trend.text && h('small', { class: part.trend.going }, part.trend.text)],
      part.lag === null ? rateLine(part, kind === 'sink' ? 'in' : 'out') : lagLine(part),
      count(part.counts.dead_lettered), count(part.restarts),
      h('span', { class: 'words' }, positions(place), Object.entries(part.detail).map(([fact, text]) => h('small', { key: fact }, `${fact}: ${text}`))),
    ],
  };
}

function positions(place) {
  if (!place?.count) return null;
  return [place.positions.map((each) => h('small', { key: `at ${each.where}` }, `${each.where}: `, h('b', {}, each.at), each.left ? `, ${count(each.left)} left` : '')), place.count > place.positions.length && h('small', {}, `and ${count(place.count - place.positions.length)} more`)];
}
