// A stream of events that comes back when it breaks, and rests while nobody looks.

const RETRY_MS = 2000;
const HIDDEN_MS = 30000;

export function listen(path, handlers, { onCut = () => {}, onOpen = () => {} } = {}) {
  let source = null;
  let ended = false;
  let hidden = null;
  let retry = null;

  function open() {
    clearTimeout(retry);
    if (ended || source) return;
    source = new EventSource(typeof path === 'function' ? path() : path);
    source.addEventListener('open', onOpen);
    for (const [kind, take] of Object.entries(handlers)) source.addEventListener(kind, (event) => take(JSON.parse(event.data)));
    source.addEventListener('error', () => {
      onCut();
      // The browser tries again by itself, unless it was refused.
      if (source?.readyState === EventSource.CLOSED) {
        rest();
        retry = setTimeout(() => { if (!document.hidden) open(); }, RETRY_MS);
      }
    });
  }

  function rest() {
    source?.close();
    source = null;
  }

  function look() {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(rest, HIDDEN_MS);
    else open();
  }

  document.addEventListener('visibilitychange', look);
  open();
  return {
    again() {
      rest();
      open();
    },
    close() {
      ended = true;
      clearTimeout(hidden);
      clearTimeout(retry);
      document.removeEventListener('visibilitychange', look);
      rest();
    },
    get open() { return source !== null; },
  };
}

// The document of a view, told again and again: `memory` has it, or what is wrong.
export function watch(memory, path) {
  if (memory.listening) return;
  memory.document = null;
  memory.trouble = null;
  memory.listening = listen(`/v1/console/live/${path}`, {
    now: (found) => { memory.document = found; memory.trouble = null; memory.changed(); },
    trouble: (found) => { memory.trouble = found; memory.changed(); },
  });
  memory.leave = () => memory.listening.close();
}
