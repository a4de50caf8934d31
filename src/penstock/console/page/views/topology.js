// The declared graph, from left to right, with what flows at the moment.

import { h, to } from '../dom.js';
import { count, rate, short } from '../format.js';
import { state } from '../live.js';
import { mood } from '../parts.js';

const LEAST_SCALE = 0.6; // a wider graph is scrolled
const DRUMS = new Set(['table', 'lake']);

export function topology(words, memory) {
  if (!memory.graph) {
    memory.graph = { nodes: [], edges: [], waiting: true };
    memory.restarted = () => load(memory);
    load(memory);
  }
  const { graph } = memory;
  if (graph.waiting) return [h('h1', {}, 'Topology'), h('p', { class: 'quiet' }, 'Waiting for the graph…')];
  if (!graph.nodes.length) return [h('h1', {}, 'Topology'), h('p', { class: 'quiet' }, graph.trouble || 'No application is known here: penstock console APP')];
  return [
    h('h1', {}, 'Topology'),
    drawing(graph),
    h('p', { class: 'quiet' }, 'A node leads to its page. Rates are those of the last second; a dashed node does not run here.'),
  ];
}

// The graph; with `lit`, only the nodes of these names stand out.
export function drawing(graph, lit = null) {
  const running = byName();
  const width = graph.width + 40;
  const height = graph.height + 40;
  return h('div', { class: 'canvas', tabindex: 0, role: 'region', 'aria-label': `The graph of ${graph.app}` },
    h('svg', { class: 'graph', viewBox: `-20 -20 ${width} ${height}`, width, css: { 'min-width': `${Math.round(width * LEAST_SCALE)}px` }, role: 'group', 'aria-label': `The graph of ${graph.app}` },
      h('defs', {}, h('marker', { id: 'head', viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' }, h('path', { d: 'M0 1 L10 5 L0 9 z' }))),
      graph.edges.map((each) => edge(each, running, lit)),
      graph.nodes.map((each) => node(each, running, graph, lit))));
}

export function load(memory) {
  fetch('/v1/console/graph').then(async (answer) => {
    const found = await answer.json();
    memory.graph = answer.ok ? found : { nodes: [], edges: [], trouble: found.detail };
  }).catch(() => { memory.graph = { nodes: [], edges: [], trouble: 'The graph did not come; it is asked for again when the run is back.' }; }).finally(memory.changed);
}

// The parts that run, all processes of one together.
function byName() {
  const found = new Map();
  for (const each of state.now?.parts ?? []) {
    const one = found.get(each.part) ?? { key: each.key, state: each.state, lag: null, rate_in: 0, rate_out: 0, dead: 0, restarts: 0, processes: 0 };
    if (!each.well) one.state = each.state;
    if (each.lag !== null) one.lag = (one.lag ?? 0) + each.lag;
    one.rate_in += each.rate_in;
    one.rate_out += each.rate_out;
    one.dead += each.counts.dead_lettered;
    one.processes += 1;
    found.set(each.part, one);
  }
  return found;
}

function edge({ start, end, points, feedback }, running, lit) {
  let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let place = 1; place < points.length; place += 1) {
    const [[x1, y1], [x2, y2]] = [points[place - 1], points[place]];
    const bend = (x2 - x1) / 2;
    path += y1 === y2 ? `L${x2.toFixed(1)} ${y2.toFixed(1)}` : `C${(x1 + bend).toFixed(1)} ${y1.toFixed(1)} ${(x2 - bend).toFixed(1)} ${y2.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`;
  }
  const reader = running.get(end);
  const writer = running.get(start);
  const flow = reader ? reader.rate_in : writer ? writer.rate_out : 0;
  const middle = points[Math.floor((points.length - 1) / 2)];
  const next = points[Math.floor((points.length - 1) / 2) + 1] ?? middle;
  return h('g', { key: `${start} ${end}`, class: `edge ${flow > 0 ? 'flows' : ''} ${feedback ? 'feedback' : ''} ${lit && !(lit.has(start) && lit.has(end)) ? 'faint' : ''}` },
    h('path', { d: path, 'marker-end': 'url(#head)' }),
    flow > 0 && h('text', { x: ((middle[0] + next[0]) / 2).toFixed(1), y: ((middle[1] + next[1]) / 2 - 6).toFixed(1) }, rate(flow)));
}

function node(each, running, graph, lit) {
  const part = running.get(each.name);
  const tone = each.is_part ? (part ? mood(part.state) : 'absent') : 'data';
  const label = each.is_part ? partWords(part) : dataWords(each, running, graph);
  const low = DRUMS.has(each.kind) ? 4 : 0; // below the rim
  const target = each.is_part ? ['part', part?.key ?? each.name] : each.on_log ? ['topics', each.name] : ['topology'];
  const most = Math.floor((each.width - 24) / 8.4);
  const whatMost = Math.floor((each.width - 24) / 6.4);
  return h('a', { key: each.name, href: to(...target), class: `node ${each.kind} ${tone} ${lit && !lit.has(each.name) ? 'faint' : ''}`, 'aria-label': `${each.kind} ${each.name}: ${label}` },
    h('title', {}, `${each.name}: ${each.what}\n${each.place}`),
    shape(each),
    h('text', { class: 'name', x: each.x + each.width / 2, y: each.y + 24 + low }, cut(each.name, most)),
    h('text', { class: 'what', x: each.x + each.width / 2, y: each.y + 42 + low }, cut(each.what, whatMost)),
    h('text', { class: 'count', x: each.x + each.width / 2, y: each.y + 60 + low / 2 }, cut(label, whatMost)));
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function partWords(part) {
  if (!part) return 'not running here';
  const words = [part.state === 'running' ? (part.rate_in ? `${rate(part.rate_in)} in` : `${rate(part.rate_out)} out`) : part.state];
  if (part.lag) words.push(`lag ${short(part.lag)}`);
  if (part.dead) words.push(`dead ${short(part.dead)}`);
  if (part.processes > 1) words.push(`${count(part.processes)} processes`);
  return words.join(' · ');
}

function dataWords(each, running, graph) {
  const writers = graph.edges.filter((edge) => edge.end === each.name).map((edge) => running.get(edge.start)).filter(Boolean);
  const lags = graph.edges.filter((edge) => edge.start === each.name).map((edge) => running.get(edge.end)?.lag ?? 0);
  const words = [rate(writers.reduce((sum, writer) => sum + writer.rate_out, 0))];
  if (Math.max(0, ...lags)) words.push(`most lag ${short(Math.max(...lags))}`);
  return words.join(' · ');
}

function shape({ kind, x, y, width, height }) {
  if (DRUMS.has(kind)) {
    const rim = `a${width / 2} 5 0 0 `;
    return h('g', {}, h('path', { class: 'shape', d: `M${x} ${y + 5} ${rim}1 ${width} 0 V${y + height - 5} ${rim}1 ${-width} 0 Z` }), h('path', { class: 'rim', d: `M${x} ${y + 5} ${rim}0 ${width} 0` }));
  }
  const corner = { service: 14, actor: 22, source: 3, sink: 3, stream: 37 }[kind] ?? 7;
  return h('rect', { class: 'shape', x, y, width, height, rx: corner });
}
