// Every text that can be seen and has too little contrast with what is behind it.
(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => { const c = v / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const shape = each !== node && each.tagName === 'a' && each.querySelector(':scope > .shape, :scope > g > .shape');
      if (shape) return rgba(getComputedStyle(shape).fill);
      const found = rgba(getComputedStyle(each).backgroundColor);
      if (found[3] === 255) return found;
    }
    return rgba(getComputedStyle(document.documentElement).backgroundColor);
  };
  const wrong = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    if (!own || !node.getClientRects().length || node.closest('.unseen, .skip, title, noscript')) continue;
    const style = getComputedStyle(node);
    const [front, back] = [rgba(node instanceof SVGElement ? style.fill : style.color), behind(node)];
    const [a, b] = [light(front.slice(0, 3)), light(back.slice(0, 3))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) wrong.push(`${ratio.toFixed(2)} ${node.className.baseVal ?? node.className} ${node.textContent.slice(0, 40)}`);
  }
  return wrong;
})()
