// Small pictures of the last hour.

import { h } from './dom.js';
import { span } from './format.js';

const HOUR = 3600;

// A line over time. Gaps stay gaps; the scale begins at 0, and the peak is said in words.
export function spark(times, values, { width = 120, height = 28, text, show = (value) => value, what = '' } = {}) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return h('span', { class: 'spark none' }, '');
  const last = times.at(-1);
  const first = Math.max(times[0], last - HOUR);
  const most = Math.max(...known, 1e-9);
  const x = (at) => 1 + ((at - first) / Math.max(1, last - first)) * (width - 2);
  const y = (value) => height - 2 - (value / most) * (height - 5);
  let line = '';
  let open = false;
  const area = [];
  values.forEach((value, place) => {
    if (value === null || value === undefined || times[place] < first) {
      open = false;
      return;
    }
    line += `${open ? 'L' : 'M'}${x(times[place]).toFixed(1)} ${y(value).toFixed(1)}`;
    area.push([x(times[place]), y(value)]);
    open = true;
  });
  const fill = `M${area[0][0].toFixed(1)} ${height} ${area.map(([a, b]) => `L${a.toFixed(1)} ${b.toFixed(1)}`).join('')} L${area.at(-1)[0].toFixed(1)} ${height}Z`;
  const label = text ?? `${what} over the last ${span(last - first)}: now ${show(known.at(-1))}, at most ${show(Math.max(...known))}`;
  return h('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    h('title', {}, label), h('path', { class: 'fill', d: fill }), h('path', { class: 'line', d: line }));
}

const MOST_BARS = 40;
const BAR = 22;

// Bars with their names and numbers; numbers below 0 go to the left.
export function bars(points, { what = '' } = {}) {
  const shown = points.slice(0, MOST_BARS);
  const least = Math.min(0, ...shown.map(([, value]) => value));
  const most = Math.max(0, ...shown.map(([, value]) => value));
  const scale = 460 / Math.max(most - least, 1e-9);
  const zero = 210 - least * scale;
  return h('figure', { class: 'picture' },
    h('svg', { viewBox: `0 0 780 ${shown.length * BAR + 6}`, role: 'img', 'aria-label': `${what} as bars` }, shown.map(([label, value], place) => h('g', { key: String(place) },
      h('text', { class: 'name', x: 200, y: place * BAR + 16, 'text-anchor': 'end' }, [label].flat().map(String).join('').slice(0, 28)),
      value !== 0 && h('rect', { x: Math.min(zero, zero + value * scale), y: place * BAR + 4, width: Math.max(1, Math.abs(value * scale)), height: BAR - 8 }, h('title', {}, `${value}`)),
      h('text', { x: Math.max(zero, zero + value * scale) + 6, y: place * BAR + 16 }, value.toLocaleString('en-US'))))),
    h('figcaption', {}, points.length > shown.length ? `${what}; the first ${MOST_BARS} of ${points.length}` : what));
}

// Points over time, in their order.
export function line(points, { what = '' } = {}) {
  const known = points.filter(([at]) => Number.isFinite(at)).sort((a, b) => a[0] - b[0]);
  if (known.length < 2) return h('p', { class: 'quiet' }, 'A line needs two points in time.');
  const values = known.map(([, value]) => value);
  const [least, most] = [Math.min(0, ...values), Math.max(...values, 1e-9)];
  const [first, last] = [known[0][0], known.at(-1)[0]];
  const x = (at) => 40 + ((at - first) / Math.max(last - first, 1e-9)) * 700;
  const y = (value) => 190 - ((value - least) / Math.max(most - least, 1e-9)) * 170;
  const day = (at) => new Date(at * 1000).toISOString().replace('T', ' ').slice(0, 19);
  return h('figure', { class: 'picture' },
    h('svg', { viewBox: '0 0 780 215', role: 'img', 'aria-label': `${what} over time, from ${least} to ${most}` },
      h('path', { class: 'line', d: known.map(([at, value], place) => `${place ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('') }),
      known.length <= 200 && known.map(([at, value], place) => h('circle', { key: String(place), cx: x(at).toFixed(1), cy: y(value).toFixed(1), r: 3 }, h('title', {}, `${day(at)}: ${value}`))),
      h('text', { x: 40, y: 12 }, most.toLocaleString('en-US')),
      h('text', { x: 40, y: 210 }, day(first)), h('text', { x: 740, y: 210, 'text-anchor': 'end' }, day(last))),
    h('figcaption', {}, `${what} over time (UTC)`));
}
