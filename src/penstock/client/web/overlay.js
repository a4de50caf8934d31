// What a page has written and not yet seen, shown over the result that the gateway told.

import { fulfils } from './filter.js';
import { at, compare, keyOf, same } from './values.js';

/**
 * @typedef {object} Effect What a write is expected to do to one document.
 * @property {any} id Its `_id`.
 * @property {string} [live] The live queries over its table; it can be left out if the gateway has one only.
 * @property {Record<string, any>} [document] The whole document, if it may be new.
 * @property {Record<string, any>} [set] Fields that change.
 * @property {boolean} [remove] It goes.
 * @property {any} [known] The document as it was when this was written.
 */
/**
 * @typedef {object} Asked What a list needs to know of its query.
 * @property {any} [filter]
 * @property {[string, 1 | -1][]} [sort]
 * @property {number} [limit]
 * @property {number} [offset]
 */

/**
 * Return the documents as they will be when these writes are done.
 * @param {any[]} documents
 * @param {readonly Effect[]} effects
 * @param {Asked} asked
 * @param {{ordered: boolean, lookup: (id: any) => any, matches?: (document: any) => boolean | null}} list
 * @returns {any[]}
 */
export function overlaid(documents, effects, asked, { ordered, lookup, matches }) {
  if (!effects.length) return documents;
  const shown = [...documents];
  const keys = shown.map((each) => keyOf(each._id));
  /** @type {Map<string, any>} */
  const known = new Map();
  /** @param {number} place @param {number} count @param {any[]} added */
  const put = (place, count, ...added) => {
    shown.splice(place, count, ...added);
    keys.splice(place, count, ...added.map((each) => keyOf(each._id)));
  };
  for (const effect of effects) {
    const key = keyOf(effect.id);
    const place = keys.indexOf(key);
    const before = place >= 0 ? shown[place] : known.get(key) ?? lookup(effect.id);
    const after = foreseen(before, effect);
    known.set(key, after);
    if (place < 0 && !after) continue;
    const fits = after ? (matches ?? ((each) => fulfils(asked.filter, each)))(after) : false;
    if (fits === false) {
      if (place >= 0) put(place, 1);
    } else if (place >= 0 && (!ordered || fits === null || !moves(before, after, asked))) {
      shown[place] = after;
    } else if (fits && (place >= 0 || !asked.offset)) {
      if (place >= 0) put(place, 1);
      put(ordered ? placeOf(shown, after, asked) : shown.length, 0, after);
    }
  }
  return asked.limit ? shown.slice(0, asked.limit) : shown;
}

/**
 * Return what a document will be; undefined: there will be none, or nobody knows the rest of it.
 * @param {any} before
 * @param {Effect} effect
 */
export function foreseen(before, effect) {
  if (effect.remove) return undefined;
  const base = effect.document ?? before;
  return base ? { ...base, _id: effect.id, ...effect.set } : undefined;
}

/**
 * Return whether a document is as a write foresaw it.
 * @param {any} document
 * @param {Effect} effect
 */
export function isDone(document, effect) {
  if (effect.remove) return document === undefined;
  if (document === undefined) return false;
  const wanted = { ...effect.document, ...effect.set };
  return Object.entries(wanted).every(([name, value]) => name === '_id' || same(document[name], value));
}

/** @param {any} before @param {any} after @param {Asked} asked */
const moves = (before, after, asked) => (asked.sort ?? []).some(([path]) => compare(at(before, path), at(after, path)) !== 0);

/** @param {any[]} documents @param {any} one @param {Asked} asked */
function placeOf(documents, one, asked) {
  let [low, high] = [0, documents.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(one, documents[middle], asked) < 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** @param {any} a @param {any} b @param {Asked} asked */
function order(a, b, asked) {
  for (const [path, direction] of asked.sort ?? []) {
    const found = compare(at(a, path), at(b, path));
    if (found) return found * direction;
  }
  return compare(a._id, b._id);
}
