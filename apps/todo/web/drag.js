// Items that are moved: by a pointer on their handle, or by arrow keys.

/**
 * @param {HTMLElement} list
 * @param {(key: string, place: number) => void} move Put an item to a place among the others.
 */
export function draggable(list, move) {
  let held = null;

  const places = () => [...list.children].filter((node) => node !== held?.node);

  list.addEventListener('pointerdown', (event) => {
    const handle = event.target.closest('.handle');
    if (!handle || event.button !== 0) return;
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    held = { node: handle.closest('li'), from: event.clientY, place: -1 };
    held.node.classList.add('held');
  });

  list.addEventListener('pointermove', (event) => {
    if (!held) return;
    held.node.style.transform = `translateY(${event.clientY - held.from}px)`;
    const others = places();
    const place = others.filter((node) => middle(node) < event.clientY).length;
    if (place === held.place) return;
    held.place = place;
    others.forEach((node, at) => node.classList.toggle('target', at === place));
    list.classList.toggle('target-end', place === others.length);
  });

  const drop = (event) => {
    if (!held) return;
    const { node, place } = held;
    const from = [...list.children].indexOf(node);
    node.classList.remove('held');
    node.style.transform = '';
    for (const each of list.children) each.classList.remove('target');
    list.classList.remove('target-end');
    held = null;
    if (event.type === 'pointerup' && place >= 0 && place !== from) move(node.dataset.key, place);
  };
  list.addEventListener('pointerup', drop);
  list.addEventListener('pointercancel', drop);

  list.addEventListener('keydown', (event) => {
    const handle = event.target.closest?.('.handle');
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!handle || !step) return;
    event.preventDefault();
    const node = handle.closest('li');
    const place = [...list.children].indexOf(node) + step;
    if (place >= 0 && place < list.children.length) move(node.dataset.key, place);
  });

  /** Whether somebody holds an item now: the list is not to be drawn anew. */
  return () => held !== null;
}

function middle(node) {
  const { top, height } = node.getBoundingClientRect();
  return top + height / 2;
}
