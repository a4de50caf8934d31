// What the run pushes, kept while the page is open; it says when it is cut off, and comes back.

import { listen } from './stream.js';

const HOUR = 3600;
const SILENT_MS = 10000;
const MOST_HAPPENINGS = 500;

export const state = {
  about: null,
  now: null,
  history: { at: [], every_seconds: 5, series: {} },
  happened: [],
  cut: null, // since when nothing is heard, in milliseconds
  began: Date.now(),
};

let line = null;
let heard = Date.now();
let changed = () => {};
let restarted = () => {};

export function follow({ onChange, onRestart }) {
  changed = onChange;
  restarted = onRestart;
  const handlers = {
    about: on(takeAbout),
    history: on((found) => { state.history = found; }),
    samples: on(takeSamples),
    happened: on(takeHappened),
    now: on((found) => { state.now = found; }),
  };
  const path = () => {
    const last = state.happened.at(-1);
    return `/v1/console/live${last && state.about ? `?after=${state.about.boot}-${last.number}` : ''}`;
  };
  line = listen(path, handlers, { onCut: cutOff, onOpen: () => { heard = Date.now(); } });
  setInterval(look, 1000);
}

function on(take) {
  return (found) => {
    heard = Date.now();
    take(found);
    state.cut = null;
    changed();
  };
}

function look() {
  if (line.open && !document.hidden && Date.now() - heard > SILENT_MS) {
    cutOff();
    heard = Date.now();
    line.again();
  }
  if (state.cut) changed();
}

function cutOff() {
  state.cut ??= heard;
  changed();
}

function takeAbout(found) {
  const other = state.about && state.about.boot !== found.boot;
  state.about = found;
  if (other) {
    state.happened = [];
    restarted();
  }
}

function takeHappened(found) {
  const last = state.happened.at(-1)?.number ?? 0;
  state.happened = [...state.happened, ...found.filter((each) => each.number > last)].slice(-MOST_HAPPENINGS);
}

function takeSamples(found) {
  const { history } = state;
  const oldest = found.at.at(-1) - HOUR;
  const drop = history.at.findIndex((at) => at >= oldest);
  const first = drop < 0 ? history.at.length : drop;
  const before = history.at.length;
  history.at = [...history.at.slice(first), ...found.at];
  for (const whose of new Set([...Object.keys(history.series), ...Object.keys(found.series)])) {
    const mine = (history.series[whose] ??= {});
    for (const what of new Set([...Object.keys(mine), ...Object.keys(found.series[whose] ?? {})])) {
      const old = mine[what] ?? Array(before).fill(null);
      mine[what] = [...old.slice(first), ...(found.series[whose]?.[what] ?? Array(found.at.length).fill(null))];
    }
  }
}

export const series = (whose, what) => state.history.series[whose]?.[what] ?? [];
