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
