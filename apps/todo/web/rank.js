// Where items stand: texts that are compared. There is always a text between two others, so a move writes one item only.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const HEAD = 6;
const MOST = DIGITS.length ** HEAD;
const STEP = 3000;
const LONGEST = 390;

/**
 * Return a text between two others; empty: there is none on that side. Two pages that put something into one
 * place at once get different texts, almost always; if not, the identities of the items decide, and nothing breaks.
 * @param {string} before
 * @param {string} after
 * @param {() => number} [random]
 */
export function between(before, after, random = Math.random) {
  const low = number(before);
  if (!after || after <= before) {
    const next = before ? low + 1 + Math.floor(random() * STEP) : MOST / 2;
    return next < MOST ? head(next) : inner(before, '', random);
  }
  const previous = number(after) - 1 - Math.floor(random() * STEP);
  if (!before && previous > 0) return head(previous);
  return inner(before, after, random);
}

function inner(before, after, random) {
  let made = '';
  let open = !after;
  for (let at = 0; at < LONGEST; at += 1) {
    const low = at < before.length ? DIGITS.indexOf(before[at]) : 0;
    const high = open ? DIGITS.length : at < after.length ? DIGITS.indexOf(after[at]) : 0;
    const room = high - low - 1;
    if (room > 0) {
      const middle = low + 1 + Math.floor(room / 4 + random() * (room / 2));
      return made + DIGITS[Math.min(middle, high - 1)] + DIGITS[1 + Math.floor(random() * (DIGITS.length - 1))];
    }
    made += DIGITS[low];
    if (high > low) open = true;
  }
  return `${made.slice(0, LONGEST)}V`;
}

function number(text) {
  return [...text.padEnd(HEAD, DIGITS[0]).slice(0, HEAD)].reduce((sum, each) => sum * DIGITS.length + DIGITS.indexOf(each), 0);
}

function head(value) {
  let made = '';
  for (let rest = Math.floor(value), at = 0; at < HEAD; at += 1, rest = Math.floor(rest / DIGITS.length)) made = DIGITS[rest % DIGITS.length] + made;
  return made;
}
