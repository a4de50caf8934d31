// The page: which list is open, which of its items are shown, and what is searched for.

import { literal } from '/v1/client/live.js';
import { $, keyed, make, put, say } from '/dom.js';
import { drawItems, listenToItems } from '/items.js';
import { announce, notice } from '/notices.js';
import { COUNTS, LISTS, add, bringBack, edit, itemsOf, kept, penstock, remove } from '/store.js';

const SHOWN = { all: 'All', open: 'Open', done: 'Done' };
const SEARCH_MS = 150;
const SAVING_MS = 2000;
const MOST_FOUND = 50;

const lists = penstock.list(LISTS);
const counts = penstock.live(COUNTS);
/** The query that is shown, and the one that is to be shown as soon as it has a result. */
let current = null;
let coming = null;
let scheduled = false;

// Where we are: `#/list/all`, in the address, so that the browser's buttons lead back.
function place() {
  const [, list = '', shown = 'all'] = location.hash.split('/');
  const known = lists.documents.some((each) => encodeURIComponent(each.id) === list);
  return { list: known ? decodeURIComponent(list) : lists.documents[0]?.id ?? '', shown: shown in SHOWN ? shown : 'all' };
}

const address = (list, shown) => `#/${encodeURIComponent(list)}/${shown}`;

function counted(list, done) {
  const found = counts.documents.filter((each) => each.list === list && (done === undefined || each.done === done));
  return found.reduce((sum, each) => sum + Number(each.items), 0);
}

/** Follow what is to be shown. What is on the screen stays until the other result is there. */
function follow() {
  const wanted = $('search').value.trim();
  const { list, shown } = place();
  const name = wanted ? `search ${wanted}` : list && `${list} ${shown}`;
  if ((coming ?? current)?.name === name) return;
  coming?.query.close();
  coming = null;
  if (!name) {
    current?.query.close();
    current = null;
    draw();
    return;
  }
  const query = wanted
    ? { filter: { list: { $ne: '' }, text: { $regex: literal(wanted), $options: 'i' } }, sort: [['done', 1], ['text', 1]], limit: MOST_FOUND }
    : itemsOf(list, shown);
  const made = { name, wanted, list, shown, query: penstock.list(query) };
  coming = made;
  made.query.addEventListener('change', ({ detail }) => {
    if (coming === made) {
      current?.query.close();
      [current, coming] = [made, null];
    } else if (detail) tellOthers(detail);
    draw();
  });
  made.query.addEventListener('error', ({ detail }) => notice(`This cannot be shown: ${detail.message}`));
}

/** Tell a screen reader what others do; what this page did, it has said already. */
function tellOthers({ events }) {
  const mine = kept.who ?? '';
  for (const { what, document: item } of events) {
    if (what !== 'remove' && item.who && item.who !== mine) announce(`${item.who}: ${item.text}${item.done ? ', done' : ''}`);
  }
}

/** Draw once for all that changes before the next frame; also in a tab that nobody sees, where there are no frames. */
function draw() {
  if (scheduled) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    drawWire();
    drawLists();
    drawMain();
  }, 0);
}

function drawWire() {
  const { state, waiting } = penstock;
  const changes = waiting === 1 ? '1 change waits' : `${waiting} changes wait`;
  const words = state === 'open' ? (late ? 'Saving' : 'Live') : state === 'refused' ? 'Not allowed' : navigator.onLine ? 'Connecting' : 'Offline';
  say($('wire'), waiting && (late || state !== 'open') ? `${words}: ${changes}` : words);
  put($('wire'), 'data-state', state === 'open' ? 'open' : 'cut');
}

/** Whether writes have waited for long: what is saved at once is not worth a word. */
let late = false;
let waitingFor;
penstock.addEventListener('writes', ({ detail: waiting }) => {
  if (waiting && !waitingFor) {
    waitingFor = setTimeout(() => {
      late = true;
      draw();
    }, SAVING_MS);
  } else if (!waiting) {
    clearTimeout(waitingFor);
    [late, waitingFor] = [false, undefined];
  }
});

function drawLists() {
  const { list, shown } = place();
  keyed($('lists'), lists.documents, (each) => each.id, () => make('li', {}, make('a', {}, make('span', { class: 'name' }), make('span', { class: 'count' }))), (node, each) => {
    const [link] = node.children;
    const open = counted(each.id, false);
    put(link, 'href', address(each.id, shown));
    put(link, 'aria-current', each.id === list && !$('search').value.trim() ? 'page' : false);
    say(link.children[0], each.text);
    say(link.children[1], open ? String(open) : '');
    put(link.children[1], 'aria-label', `${open} open`);
  });
}

function drawMain() {
  const { list, shown } = place();
  const wanted = current?.wanted ?? '';
  const title = lists.documents.find((each) => each.id === list);
  const items = current?.query.documents ?? [];
  say($('title'), wanted ? `Found: ${wanted}` : title?.text ?? 'To do');
  document.title = title ? `${title.text} – To do` : 'To do';
  for (const id of ['new-item', 'filters']) $(id).hidden = !title || Boolean(wanted);
  $('delete-list').hidden = !title || Boolean(wanted) || counted(list) > 0;
  keyed($('filters'), Object.keys(SHOWN), (each) => each, () => make('a', {}, make('span'), ' ', make('span', { class: 'count' })), (node, each) => {
    put(node, 'href', address(list, each));
    put(node, 'aria-current', each === shown ? 'true' : false);
    say(node.children[0], SHOWN[each]);
    say(node.children[1], String(counted(list, { open: false, done: true }[each])));
  });
  drawItems(current, wanted ? (id) => lists.documents.find((each) => each.id === id)?.text ?? '' : null);
  $('empty').hidden = items.length > 0 || !lists.replica.ready;
  say($('empty'), wanted ? 'Nothing has these words.' : !title ? 'Make a first list.' : shown === 'done' ? 'Nothing is done yet.' : shown === 'open' ? 'All done.' : 'Nothing to do yet.');
}

for (const each of [lists, counts]) {
  each.addEventListener('change', () => {
    follow();
    draw();
  });
}
for (const name of ['state', 'writes']) penstock.addEventListener(name, draw);
addEventListener('online', draw);
addEventListener('offline', draw);
addEventListener('hashchange', () => {
  $('search').value = '';
  follow();
  draw();
});
listenToItems(() => current?.query.documents ?? [], draw);

let typing;
$('search').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    follow();
    draw();
  }, SEARCH_MS);
});

$('who').value = kept.who ?? '';
$('who').addEventListener('input', () => { kept.who = $('who').value.trim(); });

$('new-item').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text) return;
  add(place().list, text, current?.wanted ? [] : current?.query.documents ?? []);
  $('text').value = '';
  announce(`Added ${text}`);
});

$('new-list').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('list-name').value.trim();
  if (!text) return;
  const id = add('', text, lists.documents);
  $('list-name').value = '';
  location.hash = address(id, 'all');
  $('text').focus();
});

$('delete-list').addEventListener('click', () => {
  const list = lists.documents.find((each) => each.id === place().list);
  if (!list) return;
  remove(list);
  notice(`Deleted the list “${list.text}”`, 'Undo', () => bringBack(list));
});

penstock.addEventListener('refused', ({ detail }) => notice(`“${detail.write.record.text ?? 'A change'}” was refused: ${detail.message}`, null, null, { stays: true }));

// Somebody else was first: nothing of theirs is overwritten unseen, and what was written here is not lost.
penstock.addEventListener('settled', ({ detail: { write, documents: [item] } }) => {
  const { id, text, gone } = write.record;
  const [{ known } = {}] = write.effects;
  if (gone && item) {
    notice(`“${item.text}” was kept: ${item.who || 'somebody'} had changed it`, 'Delete all the same', () => remove(item), { stays: true });
  } else if (text !== undefined && item && item.text !== text && item.edit === write.id) {
    notice(`${item.who || 'Somebody'} had changed this to “${item.text}”, while you wrote “${text}”`, 'Use mine', () => edit(item, { text }), { stays: true });
  } else if (text !== undefined && !item && known && !current?.wanted) {
    notice(`“${known.text}” was deleted meanwhile`, 'Bring it back', () => bringBack({ ...known, id }, text), { stays: true });
  }
});

draw();
