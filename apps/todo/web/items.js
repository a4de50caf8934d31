// The items that are shown: done, edited, moved and deleted here.

import { $, keyed, make, marked, put, say } from '/dom.js';
import { draggable } from '/drag.js';
import { announce, notice } from '/notices.js';
import { bringBack, edit, move, remove } from '/store.js';

let isHeld = () => false;
let redraw = () => {};
let shown = () => [];
/** What is being edited: its identity, and the version that was seen when it began. */
let editing = null;

const named = (id) => shown().find((each) => each.id === id);

/** @param {() => any[]} documents @param {() => void} draw */
export function listenToItems(documents, draw) {
  [shown, redraw] = [documents, draw];
  isHeld = draggable($('items'), (id, place) => {
    const item = named(id);
    move(shown(), id, place);
    announce(`${item?.text} is now ${place + 1} of ${shown().length}`);
    redraw();
  });
}

/** @param {{query: any, wanted: string} | null} current @param {((id: string) => string) | null} listName */
export function drawItems(current, listName) {
  if (isHeld()) return; // what somebody holds does not jump away; it is drawn when they let go
  const items = current?.query.documents ?? [];
  keyed($('items'), items, (each) => each.id, create, (node, item) => update(node, item, current, listName));
}

function create({ id }) {
  return make('li', {},
    make('button', { class: 'handle', 'aria-describedby': 'help' }, make('span', { class: 'dots', 'aria-hidden': 'true' })),
    make('input', { type: 'checkbox', onchange: (event) => toggle(id, event.target) }),
    make('button', { class: 'text', onclick: () => begin(id) }),
    make('span', { class: 'of' }),
    make('span', { class: 'by' }),
    make('button', { class: 'icon delete', onclick: () => gone(id) }, make('span', { 'aria-hidden': 'true' }, '×')));
}

function update(node, item, current, listName) {
  const [handle, box, text, of, by, away] = node.children;
  put(handle, 'aria-label', `Move ${item.text}`);
  handle.hidden = listName !== null;
  put(box, 'aria-label', `Done: ${item.text}`);
  box.checked = item.done;
  put(node, 'class', [item.done && 'done', current.query.isPending(item.id) && 'pending'].filter(Boolean).join(' ') || false);
  if (editing?.id !== item.id) {
    const parts = listName ? marked(item.text, current.wanted) : [item.text];
    if (text.textContent !== item.text || text.dataset.wanted !== current.wanted) text.replaceChildren(...parts);
    text.dataset.wanted = current.wanted;
    put(text, 'aria-label', `Edit ${item.text}`);
  }
  say(of, listName ? listName(item.list) : '');
  say(by, item.who);
  put(away, 'aria-label', `Delete ${item.text}`);
}

function toggle(id, box) {
  const item = named(id);
  if (!item) return;
  edit(item, { done: box.checked });
  announce(`${item.text} is ${box.checked ? 'done' : 'open'}`);
}

function gone(id) {
  const item = named(id);
  if (!item) return;
  const next = document.querySelector(`#items li[data-key="${CSS.escape(id)}"]`)?.nextElementSibling ?? $('items').firstElementChild;
  remove(item);
  redraw();
  setTimeout(() => (next?.isConnected ? next.querySelector('.delete') : $('text')).focus(), 0);
  notice(`Deleted “${item.text}”`, 'Undo', () => bringBack(item));
}

/** Edit a text where it stands: Enter keeps it, Escape does not. */
function begin(id) {
  const item = named(id);
  const button = document.querySelector(`#items li[data-key="${CSS.escape(id)}"] .text`);
  if (!item || !button) return;
  editing = { id };
  const field = make('input', { class: 'text', maxlength: '500', 'aria-label': `Text of ${item.text}`, value: item.text });
  let ended = false;
  const end = (keep) => {
    if (ended) return;
    ended = true;
    editing = null;
    const text = field.value.trim();
    const focused = document.activeElement === field;
    field.replaceWith(button);
    if (focused) button.focus();
    // It is based on the text that was there when the editing began, whatever came since.
    if (keep && text && text !== item.text) edit(item, { text });
    redraw();
  };
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.isComposing) end(true);
    if (event.key === 'Escape') end(false);
  });
  field.addEventListener('blur', () => end(true));
  button.replaceWith(field);
  field.focus();
  field.select();
}
