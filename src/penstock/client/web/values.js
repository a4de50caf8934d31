// Values as documents have them: instants, bytes, decimals and large integers; what is equal, and what comes first.

const UNSAFE_DIGITS = /\d{16}/;
const DEEPEST = 100;

/**
 * Read JSON of a gateway. Integers that a number cannot hold become a BigInt, so that two keys stay two.
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  return UNSAFE_DIGITS.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

/** @type {(this: any, name: string, value: any, context?: {source?: string}) => any} */
function exact(_name, value, context) {
  const lost = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '');
  return lost ? BigInt(/** @type {string} */ (context?.source)) : value;
}

/**
 * Write JSON for a gateway: a Date, bytes and a BigInt as documents have them.
 * @param {any} value
 * @returns {string}
 */
export function write(value) {
  const raw = /** @type {any} */ (JSON).rawJSON;
  return JSON.stringify(written(value, 0), (_name, each) => {
    if (typeof each !== 'bigint') return each;
    if (raw) return raw(String(each));
    if (Number.isSafeInteger(Number(each))) return Number(each);
    throw new RangeError(`this browser cannot write the integer ${each} as JSON`);
  });
}

/** @param {any} value @param {number} depth @returns {any} */
function written(value, depth) {
  if (depth > DEEPEST) throw new RangeError(`a value is nested more than ${DEEPEST} levels deep`);
  if (value instanceof Date) return { $date: value.toISOString() };
  if (value instanceof Uint8Array) return { $binary: btoa(String.fromCharCode(...value)) };
  if (Array.isArray(value)) return value.map((each) => written(each, depth + 1));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, written(each, depth + 1)]));
}

/**
 * Return a JSON value with its instants as Date and its bytes as Uint8Array. A decimal becomes its text.
 * @param {any} value
 * @returns {any}
 */
export function readable(value) {
  if (Array.isArray(value)) return value.map(readable);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  if (entries.length === 1 && typeof entries[0][1] === 'string') {
    const [name, given] = entries[0];
    if (name === '$date') return new Date(given);
    if (name === '$numberDecimal') return given;
    if (name === '$binary') return Uint8Array.from(atob(given), (each) => each.charCodeAt(0));
  }
  return Object.fromEntries(entries.map(([name, each]) => [name, readable(each)]));
}

/**
 * Return a text that two identities share if their JSON is the same.
 * @param {any} id
 * @returns {string}
 */
export function keyOf(id) {
  if (typeof id === 'string') return JSON.stringify(id);
  return JSON.stringify(written(id, 0), (_name, each) => (typeof each === 'bigint' ? { $bigint: String(each) } : each));
}

/** @param {any} a @param {any} b @returns {boolean} */
export function same(a, b) {
  return a === b || keyOf(a ?? null) === keyOf(b ?? null);
}

/**
 * Return the kind of a value, as sorting orders kinds: null, numbers, texts, objects, lists, bytes, truth, instants.
 * @param {any} value
 */
export function rankOf(value) {
  if (value === null || value === undefined) return 0;
  if (typeof value === 'number' || typeof value === 'bigint') return 1;
  if (typeof value === 'string') return 2;
  if (Array.isArray(value)) return 4;
  if (value instanceof Uint8Array) return 5;
  if (typeof value === 'boolean') return 6;
  return value instanceof Date ? 7 : 3;
}

/**
 * Compare two values as gateways sort them: by kind, then by value; texts by their code points.
 * @param {any} a
 * @param {any} b
 * @returns {number}
 */
export function compare(a, b) {
  const ranks = rankOf(a) - rankOf(b);
  if (ranks) return ranks;
  if (typeof a === 'string') return compareTexts(a, b);
  if (rankOf(a) === 3 || rankOf(a) === 4 || rankOf(a) === 5) return compareTexts(keyOf(a), keyOf(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param {string} a @param {string} b */
function compareTexts(a, b) {
  const most = Math.min(a.length, b.length);
  for (let at = 0; at < most; at += 1) {
    const [one, other] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (one === other) continue;
    // A code point above 0xffff is two surrogates here, and yet comes after 0xe000 to 0xffff.
    const [high, low] = [one, other].map((each) => (each >= 0xe000 ? each - 0x800 : each >= 0xd800 ? each + 0x2000 : each));
    return high - low;
  }
  return a.length - b.length;
}

/**
 * Return what a document has at a path such as `place.city`.
 * @param {any} document
 * @param {string} path
 */
export function at(document, path) {
  let found = document;
  for (const name of path.split('.')) {
    if (found === null || typeof found !== 'object' || !Object.hasOwn(found, name)) return undefined;
    found = found[name];
  }
  return found;
}
