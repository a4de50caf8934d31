// What this page reads and writes: queries over items, and edits.

import { Refused, connect } from '/v1/client/live.js';
import { notice } from '/notices.js';
import { between } from '/rank.js';

/** What this browser keeps; nothing, where that is forbidden. */
function allowed(name) {
  try {
    return globalThis[name];
  } catch {
    return null;
  }
}

const storage = allowed('localStorage');
export const kept = storage ?? {};
export const penstock = connect({ storage, name: 'todo', firstWaitMs: 500, longestWaitMs: 10_000 });

/** Which page this is: its own edits count as seen. It stays when the page is loaded again. */
const page = (allowed('sessionStorage') ?? {}).page ??= random();

function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (each) => each.toString(16).padStart(2, '0')).join('');
}

export const LISTS = { filter: { list: '' }, sort: [['rank', 1]] };
export const COUNTS = { filter: { list: { $ne: '' } }, group: ['list', 'done'], aggregate: { items: { count: true } } };

/** The items of a list: all, or those that are open or done. */
export function itemsOf(list, shown) {
  return { filter: { list, ...(shown === 'all' ? {} : { done: shown === 'done' }) }, sort: [['rank', 1]] };
}

/** Change an item, and show it at once. */
export function edit(item, change, effect = { set: change }) {
  const who = kept.who ?? '';
  const record = { id: item.id, page, who, seen: item.version ?? 0, ...change };
  return penstock.send('todo.edits', record, { mark: 'edit', effects: { id: item.id, ...effect } }).catch((error) => {
    if (!(error instanceof Refused)) notice(`This cannot be kept: ${error.message}`); // `refused` tells the others
  });
}

/** Add an item behind the last one of a list; without a list it is a list itself. */
export function add(list, text, items) {
  const item = { id: random(), list, text, rank: between(items.at(-1)?.rank ?? '', '') };
  edit(item, { list, text, rank: item.rank }, { document: { ...item, done: false, who: kept.who ?? '', version: 0 } });
  return item.id;
}

export function remove(item) { return edit(item, { gone: true }, { remove: true }); }

export function bringBack(item, text = item.text) {
  const change = { list: item.list, text, rank: item.rank, done: item.done, gone: false };
  return edit(item, change, { document: { ...item, text } });
}

/** Put an item to a place among the others that are shown. */
export function move(items, id, place) {
  const item = items.find((each) => each.id === id);
  const others = items.filter((each) => each.id !== id);
  if (item) edit(item, { rank: between(others[place - 1]?.rank ?? '', others[place]?.rank ?? '') });
}
