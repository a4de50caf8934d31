// What is wrong, since when, why, what to do; then the numbers; then what happened.

import { spark } from '../charts.js';
import { h, link } from '../dom.js';
import { count, rate, short, span } from '../format.js';
import { series, state } from '../live.js';
import { badge, glyph, happenings, lagLine, partLink, rateLine } from '../parts.js';

const SHOWN = 60;
const PARTS = 300;
const AWAY_MS = 5000;

export function overview() {
  const { now } = state;
  if (!now) return [h('p', { class: 'quiet' }, 'Waiting for the run…')];
  return [
    h('h1', { class: 'unseen' }, 'Overview'),
    state.cut && Date.now() - state.cut > AWAY_MS && away(now),
    verdict(now),
    h('section', { class: 'tiles', 'aria-label': 'Numbers' }, tiles(now)),
    h('section', {}, h('h2', {}, 'Parts'), parts(now)),
    h('section', {}, h('h2', {}, 'What happened'), happenings(state.happened, SHOWN)),
  ];
}

// The run itself may be what is wrong: then nobody tells the page.
function away(now) {
  const runs = now.runs.map((each) => `penstock ${each.command} (process ${each.pid})`).join(', ');
  return h('section', { key: 'away', class: 'verdict-box bad', role: 'alert' },
    h('p', { class: 'big' }, glyph('silent'), 'The run does not answer'),
    h('p', {}, `Nothing has been heard of it for ${span((Date.now() - state.cut) / 1000)}. What stands below is how it was then.`),
    h('p', { class: 'do' }, h('span', { class: 'label' }, 'What to do: '), `see whether ${runs || 'it'} still lives; if not, start it again. It goes on where it was: what is on the log is kept.`));
}

function verdict(now) {
  if (!now.troubles.length) {
    return h('section', { key: 'well', class: `verdict-box ${now.mood}` }, h('p', { class: 'big' }, glyph(now.well ? 'running' : ''), capital(now.summary)), h('p', { class: 'quiet' }, lost(now), now.broker && ` · ${now.broker}`));
  }
  return h('section', { key: 'unwell', class: 'verdict-box bad' },
    h('p', { class: 'big' }, glyph('degraded'), capital(now.well ? 'not all goes as it should' : now.summary)),
    h('ul', { class: 'troubles' }, now.troubles.slice(0, 20).map((each) =>
      h('li', { key: `${each.key} ${each.state}` },
        h('p', {}, glyph(each.state), h('strong', {}, each.key ? link(['part', each.key], {}, each.what) : each.what),
          each.since_seconds === null ? '' : h('span', { class: 'since' }, `for ${span(each.since_seconds)}`)),
        each.why && h('p', { class: 'why' }, each.why),
        h('p', { class: 'do' }, h('span', { class: 'label' }, 'What to do: '), each.do, ' ', each.process && state.about?.logs && link(['log', each.process], {}, 'Open its log'), each.state === 'letters' && link(['dead-letters'], {}, 'Open the dead letters'))))),
    h('p', { class: 'quiet' }, lost(now), now.broker && ` · ${now.broker}`));
}

// What is lost, in one sentence.
function lost(now) {
  const { totals } = now;
  const words = [
    totals.dead_lettered && (totals.dead_lettered === 1 ? 'one dead letter, kept with its reason' : `${count(totals.dead_lettered)} dead letters, kept with their reasons`),
    totals.late && `${count(totals.late)} in the late ledger`,
    totals.skipped && `${count(totals.skipped)} offsets deleted by retention before they were read`,
    totals.dropped && `${count(totals.dropped)} rows dropped behind the watermark`,
    totals.unaccounted && `${count(totals.unaccounted)} records unaccounted for`,
  ].filter(Boolean);
  return words.length ? `${totals.unaccounted || totals.skipped || totals.dropped ? 'Not all is there' : 'Nothing is lost'}: ${words.join('; ')}.` : 'Every record is accounted for; no dead letters.';
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function tiles(now) {
  const { totals, worst_lag: worst } = now;
  const slow = now.parts.filter((each) => each.latency_seconds !== null).sort((a, b) => b.latency_seconds - a.latency_seconds)[0];
  const line = (what, show) => spark(state.history.at, series('', what), { what, show, width: 200, height: 36 });
  return [
    tile('In', rate(totals.in), `${count(totals.received)} handled`, line('in', rate)),
    tile('Out', rate(totals.out), `${count(totals.written)} written`, line('out', rate)),
    tile('Worst lag', worst ? short(worst.lag) : '–', worst ? [partLink(worst), worst.trend.text && ` · ${worst.trend.text}`] : 'not known', worst ? lagLine(worst, { width: 200, height: 36 }) : null, worst?.trend.going === 'growing' ? 'warn' : ''),
    tile('Slowest', slow ? span(slow.latency_seconds) : '–', slow ? [partLink(slow), slow.kind === 'pipeline' ? ' · a batch' : ' · a record'] : 'nothing was measured', slow ? spark(state.history.at, series(slow.key, 'latency'), { what: 'latency', show: span, width: 200, height: 36 }) : null),
    tile('Dead letters', count(totals.dead_lettered), totals.dead_lettered ? link(['dead-letters'], {}, 'by reason') : 'since the run began', line('dead_lettered', count), totals.dead_lettered ? 'warn' : ''),
    tile('Restarts', count(totals.restarts), `in flight ${count(totals.in_flight)}`, line('restarts', count), totals.restarts ? 'warn' : ''),
  ];
}

function tile(title, value, below, picture, tone = '') {
  return h('div', { key: title, class: `tile ${tone}` }, h('h3', {}, title), h('p', { class: 'value' }, value), h('p', { class: 'below' }, below), picture);
}

function parts(now) {
  if (!now.parts.length) return h('p', { class: 'quiet' }, 'Nothing runs here.');
  const heads = ['Part', 'State', 'For', 'In', 'Out', 'Lag', '', 'Dead', 'Restarts'];
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Parts' }, h('table', {},
    h('thead', {}, h('tr', {}, heads.map((each, place) => h('th', { class: place > 1 && place !== 6 ? 'number' : '', scope: 'col' }, each || h('span', { class: 'unseen' }, 'Lag over the last hour'))))),
    h('tbody', {}, now.parts.slice(0, PARTS).map((each) => h('tr', { key: each.key },
      h('th', { scope: 'row' }, partLink(each), h('small', {}, each.kind)),
      h('td', {}, badge(each.state)),
      h('td', { class: 'number' }, span(each.since_seconds)),
      h('td', { class: 'number' }, rate(each.rate_in)),
      h('td', { class: 'number' }, rate(each.rate_out)),
      h('td', { class: 'number' }, each.lag === null ? '–' : count(each.lag), each.trend.text && h('small', { class: each.trend.going }, each.trend.text)),
      h('td', {}, each.lag === null ? rateLine(each, each.kind === 'source' ? 'out' : 'in') : lagLine(each)),
      h('td', { class: `number ${each.counts.dead_lettered ? 'warn' : ''}` }, count(each.counts.dead_lettered)),
      h('td', { class: `number ${each.restarts ? 'warn' : ''}` }, count(each.restarts)))))),
  now.parts.length > PARTS && h('p', { class: 'quiet' }, `and ${now.parts.length - PARTS} more`));
}
