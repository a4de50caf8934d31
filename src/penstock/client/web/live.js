// Live queries and writes from a browser. A plain module: import it from a gateway, at /v1/client/live.js.
//
//   const penstock = connect();
//   const open = penstock.list({ filter: { done: false }, sort: [["rank", 1]] });
//   open.addEventListener("change", () => draw(open.documents));

import { Connection } from './connection.js';
import { Filter, field, fulfils, literal } from './filter.js';
import { foreseen, isDone, overlaid } from './overlay.js';
import { Outbox, Refused } from './outbox.js';
import { Replica } from './replica.js';
import { compare, keyOf } from './values.js';

export { Filter, Refused, compare, connect, field, fulfils, literal };

/** @typedef {import('./replica.js').LiveEvent} LiveEvent */
/** @typedef {import('./overlay.js').Effect} Effect */
/** @typedef {import('./connection.js').Way} Way */
/**
 * @typedef {object} Query
 * @property {Filter | Record<string, any> | string} [filter]
 * @property {[string, 1 | -1][]} [sort]
 * @property {number} [offset]
 * @property {number} [limit]
 * @property {string[]} [fields]
 * @property {string[]} [group]
 * @property {Record<string, any>} [aggregate]
 */
/**
 * @typedef {object} Following
 * @property {string} [live] The name of the live queries; it can be left out if the gateway has one only.
 * @property {string} [squash] Collect changes for so long: `"500ms"`.
 * @property {"events" | "results"} [face]
 */
/**
 * @typedef {object} Change
 * @property {"result" | "changes"} kind
 * @property {readonly LiveEvent[]} events Of one write, or of several if it is squashed.
 * @property {boolean} squashed
 * @property {any[]} [documents] Of a result: all of it.
 */

/** So many changes wait for one who iterates; more of them become one result. */
const MOST_CHANGES = 1000;
const DEFAULTS = {
  url: '', token: '', ways: /** @type {Way[]} */ (['socket', 'events', 'poll']), silenceMs: 15_000, firstWaitMs: 1000, longestWaitMs: 30_000,
  probeMs: 30_000, settleMs: 5_000, mostWrites: 1000, storage: /** @type {Storage | null} */ (null), name: 'penstock', random: Math.random,
};

/** A query could not be followed; `problem` is the gateway's reason. */
export class Failed extends Error {
  /** @param {any} problem */
  constructor(problem) {
    super(problem?.detail ?? problem?.code ?? 'the query cannot be followed');
    this.name = 'Failed';
    this.problem = problem;
  }
}

/** One query that is followed: `change` events, `documents`, and `for await` over its changes. */
export class LiveQuery extends EventTarget {
  /** @param {Penstock} client @param {Query} query @param {Following} how */
  constructor(client, query, how) {
    super();
    this.client = client;
    this.query = query;
    this.how = how;
    this.replica = new Replica();
    /** @type {Failed | null} */
    this.error = null;
    this.closed = false;
    /** @type {Set<{changes: Change[], wake: () => void}>} */
    this.readers = new Set();
    /** Fulfilled with the first result; Failed, if there will be none. */
    this.ready = new Promise((resolve, reject) => { this.settle = { resolve, reject }; });
    this.ready.catch(() => {});
    this.leave = client.connection.follow({
      request: () => this.#request(),
      take: (message) => this.#take(message),
      forget: () => { this.replica.token = ''; },
      fail: (problem) => this.#fail(problem),
    });
    client.queries.add(this);
  }

  /** The result as the gateway told it last. */
  get documents() { return this.replica.documents; }

  /** Follow it no more. */
  close() {
    if (this.closed) return;
    this.closed = true;
    this.leave();
    this.client.queries.delete(this);
    for (const each of this.readers) each.wake();
  }

  /** The result, and then each change of it. @returns {AsyncGenerator<Change, void, void>} */
  async* [Symbol.asyncIterator]() {
    let wake = () => {};
    const reader = { changes: /** @type {Change[]} */ (this.replica.ready ? [this.#result()] : []), wake: () => wake() };
    this.readers.add(reader);
    try {
      for (;;) {
        const next = reader.changes.shift();
        if (next) yield next;
        else if (this.error) throw this.error;
        else if (this.closed) return;
        else await new Promise((resolve) => { wake = () => resolve(null); });
      }
    } finally {
      this.readers.delete(reader);
    }
  }

  #request() {
    const { live, squash, face } = this.how;
    const { filter, ...rest } = this.query;
    const query = filter === undefined ? rest : { ...rest, filter: filter instanceof Filter ? filter.document : filter };
    const { token } = this.replica;
    return { query, ...(live && { live }), ...(squash && { squash }), ...(face && { face }), ...(token && face !== 'results' && { resume: token }) };
  }

  /** @param {any} message */
  #take(message) {
    const found = this.replica.take(message);
    if (found === null) return;
    /** @type {Change} */
    const change = found === 'result' ? this.#result() : { kind: 'changes', events: found, squashed: Boolean(message.squashed) };
    for (const each of this.readers) {
      if (each.changes.length >= MOST_CHANGES) each.changes = [this.#result()];
      else each.changes.push(change);
      each.wake();
    }
    this.settle?.resolve(this);
    this.client.seen(this);
    this.dispatchEvent(new CustomEvent('change', { detail: change }));
  }

  /** @returns {Change} */
  #result() { return { kind: 'result', events: [], squashed: false, documents: this.documents }; }

  /** @param {any} problem */
  #fail(problem) {
    this.error = new Failed(problem);
    this.settle?.reject(this.error);
    this.client.queries.delete(this);
    for (const each of this.readers) each.wake();
    this.dispatchEvent(new CustomEvent('error', { detail: this.error }));
  }
}

/** A result that keeps itself current, with what this page has written and not yet seen. */
export class LiveList extends LiveQuery {
  /** @param {Penstock} client @param {Query} query @param {Following & {matches?: (document: any) => boolean | null}} how */
  constructor(client, query, how) {
    super(client, query, how);
    this.matches = how.matches;
    /** @type {any[] | null} */
    this.shown = null;
    this.addEventListener('change', () => { this.shown = null; }, { capture: true });
  }

  /** The result, as it will be when all writes of this page are done. @override */
  get documents() {
    if (this.query.aggregate) return this.replica.documents; // groups are not what is written
    this.shown ??= overlaid(this.replica.documents, this.client.effects(this.how.live), this.query, {
      ordered: this.replica.ordered || Boolean(this.query.sort),
      lookup: (id) => this.client.lookup(this.how.live, id),
      matches: this.matches,
    });
    return this.shown;
  }

  /** Whether something of this document is on its way. @param {any} id */
  isPending(id) { return this.client.effects(this.how.live).some((each) => keyOf(each.id) === keyOf(id)); }

  /** What this page writes has changed. */
  written() {
    this.shown = null;
    if (this.replica.ready) this.dispatchEvent(new CustomEvent('change', { detail: null }));
  }
}

/** A gateway, as a page uses it. Events: `state`, `writes`, `refused`, `settled`. */
export class Penstock extends EventTarget {
  /** @param {Partial<typeof DEFAULTS> & {token?: string | (() => string | Promise<string>)}} options */
  constructor(options) {
    super();
    const { url, token, storage, name, ...rest } = { ...DEFAULTS, ...options };
    this.settleMs = rest.settleMs;
    const shared = { ...rest, url: (url || new URL(import.meta.url).origin).replace(/\/+$/, ''), token: typeof token === 'function' ? token : () => token };
    /** @type {Set<LiveQuery>} */
    this.queries = new Set();
    /** How old results may be in seconds, as the gateway said last; null: not known. @type {number | null} */
    this.staleSeconds = null;
    this.connection = new Connection({ ...shared, changed: () => this.#moved(), told: (message) => this.#told(message) });
    this.outbox = new Outbox({
      ...shared, storage, name: `penstock.outbox.${name}.`,
      tell: {
        changed: () => this.#written(),
        accepted: (writes) => this.#settle(writes),
        refused: (error) => this.dispatchEvent(new CustomEvent('refused', { detail: error })),
      },
    });
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** How the connection is: `idle`, `connecting`, `open`, `waiting`, `refused` or `closed`. */
  get state() { return this.connection.state; }

  /** Why it is not open, as a problem document; null: there is nothing wrong, or nobody knows. */
  get problem() { return this.connection.problem ?? this.outbox.problem; }

  /** Which way it goes: `socket`, `events` or `poll`. */
  get way() { return this.connection.way; }

  /** How many writes the gateway has not accepted yet. */
  get waiting() { return this.outbox.waiting; }

  /** Follow a query. @param {Query} [query] @param {Following} [how] */
  live(query = {}, how = {}) { return new LiveQuery(this, query, how); }

  /** Follow a query as a list with the writes of this page. @param {Query} [query] @param {Following & {matches?: (document: any) => boolean | null}} [how] */
  list(query = {}, how = {}) { return new LiveList(this, query, how); }

  /**
   * Write a record to a stream, once. It is shown at once as `effects` say, and taken back if the gateway refuses it.
   * @param {string} stream
   * @param {Record<string, any>} record
   * @param {{effects?: Effect | Effect[], mark?: string}} [how] `mark` is a field of record and row: the row has the
   *   identity of the last write that came to it there, so the page knows when its own has come.
   * @returns {Promise<{partition: number, offset: number}>} Fulfilled when it is on the log. Refused; RangeError,
   *   if too many wait already; what a storage says that is full.
   */
  send(stream, record, { effects = [], mark } = {}) {
    const id = identity();
    const several = [effects].flat().map((each) => ({ ...each, known: this.lookup(each.live, each.id) }));
    try {
      return this.outbox.add({ id, stream, effects: several, mark, record: mark ? { ...record, [mark]: id } : record });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Go on with a newer token. */
  authenticate() {
    this.outbox.hurry();
    return this.connection.authenticate();
  }

  /** Try again now, if it waits. */
  hurry() {
    this.connection.hurry();
    this.outbox.hurry();
  }

  close() {
    for (const each of [...this.queries]) each.close();
    this.connection.close();
    this.outbox.close();
    clearTimeout(this.timer);
  }

  /** What is on its way. @param {string | undefined} live @returns {Effect[]} */
  effects(live) {
    return this.outbox.writes.flatMap((each) => each.effects).filter((each) => !each.live || !live || each.live === live);
  }

  /** A document as any list of the same live queries knows it. @param {string | undefined} live @param {any} id */
  lookup(live, id) {
    for (const each of this.queries) {
      if (each.query.aggregate || each.query.fields || (live && each.how.live && each.how.live !== live)) continue;
      const found = each.replica.find(id);
      if (found) return found;
    }
    return undefined;
  }

  /** @param {LiveQuery} query */
  seen(query) {
    if (query instanceof LiveList) query.shown = null;
    this.#settle(this.outbox.writes);
  }

  /** End the writes whose effect has come, and those whose effect has not come for long. @param {readonly Write[]} writes */
  #settle(writes) {
    const now = performance.now();
    const known = new Set(this.outbox.writes);
    const done = [];
    for (const write of writes) {
      if (write.state !== 'accepted' || !known.has(write)) continue;
      const late = this.state === 'open' && now - (write.acceptedAt ?? now) >= this.settleMs;
      if (!late && write.effects.length && !write.effects.every((effect) => this.#isSeen(write, effect))) continue;
      done.push({ write, late, documents: write.effects.map((each) => this.lookup(each.live, each.id)) });
    }
    if (done.length) this.outbox.forget(done.map((each) => each.write));
    for (const detail of done) this.dispatchEvent(new CustomEvent('settled', { detail }));
    clearTimeout(this.timer);
    if (this.outbox.writes.some((each) => each.state === 'accepted')) this.timer = setTimeout(() => this.#settle(this.outbox.writes), this.settleMs);
  }

  /** Whether the lists show what a write was expected to do, or what came of it. @param {Write} write @param {Effect} effect */
  #isSeen(write, effect) {
    const document = this.lookup(effect.live, effect.id);
    if (write.mark && document) {
      const later = this.outbox.writes.slice(this.outbox.writes.indexOf(write));
      return later.some((each) => each.id === document[/** @type {string} */ (write.mark)] && each.effects.some((other) => keyOf(other.id) === keyOf(effect.id)));
    }
    if (effect.remove || document) return isDone(document, effect);
    // It is in no list: that is right if it belongs in none.
    const lists = [...this.queries].filter((each) => each instanceof LiveList && each.replica.ready && !each.query.aggregate);
    const after = foreseen(effect.known, effect);
    return after !== undefined && lists.every((each) => fulfils(each.query.filter, after) === false);
  }

  #moved() {
    if (this.state === 'open') this.outbox.hurry();
    this.dispatchEvent(new CustomEvent('state', { detail: this.state }));
  }

  /** @param {any} message */
  #told(message) {
    if (message.type === 'up-to-date') this.staleSeconds = message.stale_seconds;
  }

  #written() {
    for (const each of this.queries) if (each instanceof LiveList) each.written();
    this.dispatchEvent(new CustomEvent('writes', { detail: this.waiting }));
  }
}

/** @typedef {import('./outbox.js').Write} Write */

/** An identity for a write. Pages that are not served securely have no `randomUUID`. */
function identity() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, '0')).join('');
}

/**
 * Return a gateway; without a `url`, the one that this module came from.
 * @param {Partial<typeof DEFAULTS> & {token?: string | (() => string | Promise<string>)}} [options]
 */
function connect(options = {}) {
  return new Penstock(options);
}
