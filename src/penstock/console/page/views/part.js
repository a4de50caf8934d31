// One part: how it is, its numbers over the last hour, its facts, what happened to it.

import { spark } from '../charts.js';
import { h, link } from '../dom.js';
import { count, rate, span } from '../format.js';
import { series, state } from '../live.js';
import { watch } from '../stream.js';
import { table } from '../lists.js';
import { badge, happenings, mark } from '../parts.js';

const SHOWN = 40;

export function part([key], memory) {
  watch(memory, `parts/${encodeURIComponent(key)}`);
  const found = state.now?.parts.find((each) => each.key === key);
  if (!found) return [h('h1', {}, key ?? ''), h('p', { class: 'quiet' }, state.now ? 'This part does not run here at the moment.' : 'Waiting for the run…')];
  const { counts } = found;
  const trouble = state.now.troubles.find((each) => each.key === key);
  return [
    h('h1', {}, found.part, ' ', badge(found.state)),
    h('p', { class: 'quiet' }, `${found.kind}, process ${found.process}, ${found.state} for ${span(found.since_seconds)}`),
    h('p', {}, state.about?.logs && link(['log', found.process], { class: 'button' }, 'Its log'), ' ', found.counts.dead_lettered > 0 && link(['dead-letters'], { class: 'button' }, 'Dead letters')),
    trouble && h('section', { class: 'verdict-box bad' }, trouble.why && h('p', { class: 'why' }, trouble.why), h('p', { class: 'do' }, h('span', { class: 'label' }, 'What to do: '), trouble.do)),
    h('section', { class: 'tiles', 'aria-label': 'Numbers' },
      chart(found, 'in', 'In', rate(found.rate_in), rate),
      chart(found, 'out', 'Out', rate(found.rate_out), rate),
      chart(found, 'lag', 'Lag', found.lag === null ? '–' : count(found.lag), count, found.trend.text),
      chart(found, 'latency', 'Latency', span(found.latency_seconds), span)),
    h('section', {}, h('h2', {}, 'Every record'),
      h('p', { class: 'sum' }, ['received', 'passed', 'filtered', 'dead_lettered', 'in_flight'].map((name, place) => [
        place === 1 ? ' = ' : place > 1 ? ' + ' : '', h('span', { class: name === 'dead_lettered' && counts[name] ? 'warn' : '' }, `${count(counts[name])} ${name.replace('_', '-')}`)]),
      h('strong', { class: found.balanced ? 'good' : 'bad' }, ' ', mark(found.balanced ? 'dot' : 'cross', found.balanced ? 'good' : 'bad'), found.balanced ? ' all accounted for' : ' it does not add up')),
      h('p', { class: 'quiet' }, `${count(counts.written)} written`)),
    h('section', {}, h('h2', {}, 'Facts'), facts(found)),
    memory.document && h('section', {}, h('h2', {}, 'Metrics'), metrics(memory.document)),
    h('section', {}, h('h2', {}, 'What happened to it'), happenings(state.happened.filter((each) => each.part === key), SHOWN)),
  ];
}

function chart(found, what, title, value, show, below = '') {
  return h('div', { key: what, class: 'tile' }, h('h3', {}, title), h('p', { class: 'value' }, value), h('p', { class: 'below' }, below),
    spark(state.history.at, series(found.key, what), { what, show, width: 260, height: 48 }));
}

function facts(found) {
  const rows = Object.entries(found.detail);
  if (!rows.length) return h('p', { class: 'quiet' }, 'It has told none.');
  return h('dl', { class: 'facts' }, rows.map(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
}

function metrics({ metrics: found, about }) {
  const rows = Object.entries(found).filter(([name]) => !/_(bucket|sum|count)$/.test(name)).flatMap(([name, value]) => flat(value).map(([labels, number]) => ({ key: `${name} ${labels}`, cells: [`${name}${labels ? ` ${labels}` : ''}`, precise(number), about[name] ?? ''] })));
  const histograms = Object.keys(found).filter((name) => name.endsWith('_bucket')).map((name) => name.replace(/_bucket$/, ''));
  const spans = histograms.map((name) => ({ key: name, cells: [name, ...[0.5, 0.95, 0.99].map((part) => below(found[`${name}_bucket`], part)), count(found[`${name}_count`]), about[name] ?? ''] }));
  return [
    spans.length > 0 && table(['Duration', '#Half below', '#95% below', '#99% below', '#Times', 'What it is'], spans, { label: 'Durations' }),
    table(['Metric', '#Value', 'What it is'], rows, { label: 'Metrics', empty: 'It has told no others.' }),
  ];
}

const flat = (value, labels = '') => (typeof value === 'object' ? Object.entries(value).flatMap(([name, each]) => flat(each, labels ? `${labels} ${name}` : name)) : [[labels, value]]);
const precise = (value) => (Number.isInteger(value) || Math.abs(value) >= 1000 ? count(value) : value.toPrecision(3));

// The bound below which a part of the durations are; the histogram knows no more.
function below(buckets, part) {
  const bounds = Object.entries(buckets).map(([bound, number]) => [bound === '+Inf' ? Infinity : Number(bound), number]).sort((a, b) => a[0] - b[0]);
  const all = bounds.at(-1)?.[1] ?? 0;
  if (!all) return '–';
  const [bound] = bounds.find(([, number]) => number >= all * part);
  return bound === Infinity ? 'more' : span(bound);
}
