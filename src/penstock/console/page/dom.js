// Trees of plain values become elements. Everything is set as text or as an attribute with a name
// from this code, never parsed as markup: what a record says stays what it says.

const SVG = 'http://www.w3.org/2000/svg';

export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, key: props?.key, children: shown(children) };
}

export const shown = (children) => [children].flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false && each !== '');

export function patch(parent, vnodes, svg = false) {
  const wanted = new Set(vnodes.map((each) => each.key).filter((key) => key !== undefined));
  const known = new Map();
  for (const node of [...parent.childNodes]) {
    if (node.ownKey === undefined) continue;
    if (wanted.has(node.ownKey)) known.set(node.ownKey, node);
    else node.remove();
  }
  let at = parent.firstChild;
  for (const vnode of vnodes) {
    const text = typeof vnode !== 'object';
    let node = text ? null : known.get(vnode.key);
    if (node && node.ownTag !== vnode.tag) node = null;
    if (!node && at && at.ownKey === undefined && (text || vnode.key === undefined) && fits(at, vnode, text)) node = at;
    if (!node) node = text ? document.createTextNode('') : create(vnode, svg);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    if (!text) update(node, vnode, svg);
    else if (node.data !== String(vnode)) node.data = String(vnode);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fits(node, vnode, text) {
  return text ? node.nodeType === Node.TEXT_NODE : node.ownTag === vnode.tag;
}

function create(vnode, svg) {
  const node = svg || vnode.tag === 'svg' ? document.createElementNS(SVG, vnode.tag) : document.createElement(vnode.tag);
  node.ownTag = vnode.tag;
  node.ownKey = vnode.key;
  node.ownProps = {};
  return node;
}

function update(node, vnode, svg) {
  const { ownProps: before } = node;
  for (const name of Object.keys(before)) if (!(name in vnode.props)) set(node, name, null);
  for (const [name, value] of Object.entries(vnode.props)) if (name !== 'key' && before[name] !== value) set(node, name, value);
  node.ownProps = vnode.props;
  if (!vnode.props.own) patch(node, vnode.children, svg || vnode.tag === 'svg');
}

function set(node, name, value) {
  if (name.startsWith('on')) node[name] = value;
  else if (name === 'value' || name === 'checked') {
    if (node[name] !== value && !(name === 'value' && node === document.activeElement)) node[name] = value ?? '';
  } else if (name === 'css') for (const [each, text] of Object.entries(value ?? {})) node.style.setProperty(each, text);
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? '' : String(value));
}

// A link to a view of this page. Nothing that a record says can become another kind of address.
export function link(view, props, ...children) {
  return h('a', { ...props, href: to(...[view].flat()) }, ...children);
}

export function to(...words) {
  return `#/${words.map(encodeURIComponent).join('/')}`;
}
