// Elements from plain values. What people wrote is set as text, never parsed as markup.

export const $ = (id) => document.getElementById(id);

/** Make an element. Names that begin with `on` are listeners, the others attributes. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else put(node, name, value);
  }
  node.append(...children);
  return node;
}

/** Set an attribute, or take it away, if it is another one. */
export function put(node, name, value) {
  if (value === false || value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== (value === true ? '' : String(value))) node.setAttribute(name, value === true ? '' : String(value));
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Let a list have an element for each value, in order. Elements are kept and moved, so that focus stays where it is. */
export function keyed(parent, values, key, create, update) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  const wanted = new Set(values.map(key));
  const focused = document.activeElement;
  for (const [name, node] of known) if (!wanted.has(name)) node.remove();
  let at = parent.firstElementChild;
  for (const value of values) {
    const name = key(value);
    let node = known.get(name);
    if (!node) {
      node = create(value);
      node.dataset.key = name;
    }
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, value);
  }
  // A browser takes the focus from an element that is moved.
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus();
}

/** The part of a text that is searched for, marked. */
export function marked(text, wanted) {
  const found = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1;
  if (found < 0) return [text];
  return [text.slice(0, found), make('mark', {}, text.slice(found, found + wanted.length)), text.slice(found + wanted.length)];
}
