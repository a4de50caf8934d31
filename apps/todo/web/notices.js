// What the page says: on the screen with a way to answer, or to screen readers alone.

import { $, make } from '/dom.js';

const SHOWN_MS = 12_000;
const MOST_NOTICES = 4;

/** Say something to screen readers. */
export function announce(text) {
  const said = $('said');
  said.textContent = said.textContent === text ? `${text}\u00a0` : text; // the same words again are to be heard again
}

/** Show a notice, perhaps with a button: for a while, or until it is closed, where it has what somebody wrote. */
export function notice(text, action, act, { stays = false } = {}) {
  const shown = make('div', { class: 'notice' }, make('p', {}, text));
  const close = () => shown.remove();
  if (action) {
    shown.append(make('button', { class: 'primary', onclick: () => {
      close();
      act();
    } }, action));
  }
  shown.append(make('button', { class: 'icon', 'aria-label': 'Close', onclick: close }, '×'));
  $('notices').append(shown);
  while ($('notices').children.length > MOST_NOTICES) $('notices').firstChild.remove();
  announce(text);
  if (stays) return;
  let timer = setTimeout(close, SHOWN_MS);
  const hold = () => clearTimeout(timer);
  shown.addEventListener('pointerenter', hold);
  shown.addEventListener('focusin', hold);
  shown.addEventListener('pointerleave', () => { timer = setTimeout(close, SHOWN_MS); });
}
