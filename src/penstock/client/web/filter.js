// Filters: built from fields, and tried on a document. A gateway decides which documents a result has; a page
// only predicts it, for what it has written and not yet seen, and says null where it does not know.

import { at, compare, rankOf, same } from './values.js';

/** A filter; `document` is it in MongoDB's form. */
export class Filter {
  /** @param {Record<string, any>} document */
  constructor(document) {
    this.document = document;
    Object.freeze(this);
  }

  /** @param {Filter} other */
  and(other) { return new Filter({ $and: [this.document, other.document] }); }

  /** @param {Filter} other */
  or(other) { return new Filter({ $or: [this.document, other.document] }); }

  not() { return new Filter({ $nor: [this.document] }); }

  toJSON() { return this.document; }
}

/**
 * A field of documents, to build filters with: `field("rank").above(3).and(field("done").equals(false))`.
 * @param {string} path
 */
export function field(path) {
  /** @param {string} operator @param {any} value */
  const made = (operator, value) => new Filter({ [path]: { [operator]: value } });
  return Object.freeze({
    /** @param {any} value */ equals: (value) => made('$eq', value),
    /** @param {any} value */ differs: (value) => made('$ne', value),
    /** @param {any} value */ above: (value) => made('$gt', value),
    /** @param {any} value */ atLeast: (value) => made('$gte', value),
    /** @param {any} value */ below: (value) => made('$lt', value),
    /** @param {any} value */ atMost: (value) => made('$lte', value),
    /** @param {...any} values */ oneOf: (...values) => made('$in', values),
    /** @param {string} pattern @param {{ignoreCase?: boolean}} [options] */
    matches: (pattern, { ignoreCase = false } = {}) => new Filter({ [path]: { $regex: pattern, $options: ignoreCase ? 'i' : '' } }),
    exists: () => made('$exists', true),
  });
}

/**
 * Return a text as a pattern that finds this very text.
 * @param {string} text
 */
export function literal(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

/**
 * Return whether a document fulfils a filter; null: that cannot be told here.
 * @param {any} filter
 * @param {any} document
 * @returns {boolean | null}
 */
export function fulfils(filter, document) {
  if (filter === undefined || filter === null) return true;
  if (filter instanceof Filter) return fulfils(filter.document, document);
  if (typeof filter === 'string') return null;
  return every(Object.entries(filter).map(([name, wanted]) => {
    if (name === '$and') return every(wanted.map((/** @type {any} */ each) => fulfils(each, document)));
    if (name === '$or') return some(wanted.map((/** @type {any} */ each) => fulfils(each, document)));
    if (name === '$nor') return inverse(some(wanted.map((/** @type {any} */ each) => fulfils(each, document))));
    return name.startsWith('$') ? null : meets(at(document, name), wanted);
  }));
}

/** @param {any} value @param {any} wanted @returns {boolean | null} */
function meets(value, wanted) {
  const operators = rankOf(wanted) === 3 && Object.keys(wanted).some((each) => each.startsWith('$'));
  if (!operators) return equal(value, wanted);
  return every(Object.entries(wanted).map(([name, given]) => operate(name, value, given, wanted)));
}

/** @type {Record<string, (order: number) => boolean>} */
const ORDERS = { $gt: (order) => order > 0, $gte: (order) => order >= 0, $lt: (order) => order < 0, $lte: (order) => order <= 0 };

/** @param {string} name @param {any} value @param {any} given @param {any} whole @returns {boolean | null} */
function operate(name, value, given, whole) {
  if (name === '$eq') return equal(value, given);
  if (name === '$ne') return inverse(equal(value, given));
  if (name === '$in') return some(given.map((/** @type {any} */ each) => equal(value, each)));
  if (name === '$nin') return inverse(some(given.map((/** @type {any} */ each) => equal(value, each))));
  if (name === '$exists') return (value !== undefined) === Boolean(given);
  if (name === '$not') return inverse(meets(value, given));
  if (name in ORDERS) {
    if (rankOf(given) === 0 || [3, 4].includes(rankOf(given)) || [3, 4].includes(rankOf(value))) return null;
    return rankOf(value) === rankOf(given) && ORDERS[name](compare(value, given));
  }
  if (name === '$options') return true;
  if (name === '$regex' && typeof given === 'string') return matches(value, given, whole.$options ?? '');
  return null;
}

/** @param {any} value @param {any} wanted @returns {boolean | null} */
function equal(value, wanted) {
  if (rankOf(value) === 3 || rankOf(wanted) === 3 || rankOf(wanted) === 4) return null;
  if (Array.isArray(value)) return value.some((each) => same(each, wanted));
  return same(value, wanted);
}

/** @param {any} value @param {string} pattern @param {string} options @returns {boolean | null} */
function matches(value, pattern, options) {
  if (typeof value !== 'string') return Array.isArray(value) ? null : false;
  try {
    return new RegExp(pattern, `${options.replace(/[^ims]/g, '')}`).test(value);
  } catch {
    return null;
  }
}

/** @param {(boolean | null)[]} several */
const every = (several) => (several.includes(false) ? false : several.includes(null) ? null : true);
/** @param {(boolean | null)[]} several */
const some = (several) => (several.includes(true) ? true : several.includes(null) ? null : false);
/** @param {boolean | null} value */
const inverse = (value) => (value === null ? null : !value);
