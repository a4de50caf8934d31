// What a page writes: kept until the gateway has it, sent in order, each once. It waits while the network is
// away, and with a storage also while the page is closed.

import { refusal } from './ways.js';
import { Shelf } from './shelf.js';
import { parse, write } from './values.js';

/** @typedef {import('./overlay.js').Effect} Effect */
/**
 * @typedef {object} Write One record on its way.
 * @property {string} id The `Idempotency-Key`: the record is on the log once, however often it is sent.
 * @property {string} stream
 * @property {any} record
 * @property {Effect[]} effects What it is expected to do.
 * @property {string} [mark] The field of a row in which the `id` of the last write comes back.
 * @property {number} [triedAt] When it was sent first, by the clock of this machine.
 * @property {"waiting" | "sent" | "accepted"} state
 * @property {number} [acceptedAt]
 */
/** A record that the gateway will not take; `problem` says why. */
export class Refused extends Error {
  /** @param {Write} write @param {any} problem */
  constructor(write, problem) {
    super(problem.detail ?? problem.code);
    this.name = 'Refused';
    this.write = write;
    this.problem = problem;
  }
}

const SEND_MS = 30_000;
const KEPT_MS = 20 * 3_600_000;
/** Statuses after which the same request may succeed. */
const REPEATABLE = new Set([408, 425, 429]);

export class Outbox {
  /**
   * @param {object} options
   * @param {string} options.url
   * @param {() => string | Promise<string>} options.token
   * @param {Storage | null} options.storage
   * @param {string} options.name
   * @param {number} options.mostWrites
   * @param {number} options.firstWaitMs
   * @param {number} options.longestWaitMs
   * @param {() => number} options.random
   * @param {{changed: () => void, accepted: (write: Write) => void, refused: (error: Refused) => void}} options.tell
   */
  constructor(options) {
    this.options = options;
    /** @type {Write[]} */
    this.writes = [];
    /** @type {Map<string, {resolve: (sent: any) => void, reject: (error: Error) => void}>} */
    this.promised = new Map();
    this.failures = 0;
    this.busy = false;
    this.ended = false;
    /** @type {any} */
    this.problem = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.online = () => this.hurry();
    globalThis.addEventListener?.('online', this.online);
    this.shelf = options.storage && new Shelf(options.storage, options.name, (writes) => this.#adopt(writes));
  }

  /** How many have not been accepted. */
  get waiting() { return this.writes.filter((each) => each.state !== 'accepted').length; }

  /**
   * @param {Omit<Write, "state">} given
   * @returns {Promise<{partition: number, offset: number}>}
   */
  add(given) {
    if (this.waiting >= this.options.mostWrites) throw new RangeError(`${this.options.mostWrites} writes wait already`);
    const added = { ...given, state: /** @type {const} */ ('waiting') };
    this.#store([...this.writes, added]); // what cannot be kept is not promised
    this.writes.push(added);
    /** @type {Promise<any>} */
    const promise = new Promise((resolve, reject) => this.promised.set(given.id, { resolve, reject }));
    promise.catch(() => {}); // whoever does not wait for it hears the event
    this.options.tell.changed();
    this.hurry();
    return promise;
  }

  /** Its effect is seen, or will not be. @param {Write} write */
  forget(write) {
    this.writes = this.writes.filter((each) => each !== write);
    this.#store(this.writes);
    this.options.tell.changed();
  }

  /** Send now, if something waits. */
  hurry() {
    clearTimeout(this.timer);
    if (!this.busy && !this.ended) this.#send();
  }

  close() {
    this.ended = true;
    clearTimeout(this.timer);
    globalThis.removeEventListener?.('online', this.online);
    this.shelf?.close();
    for (const { reject } of this.promised.values()) reject(new Error('the client was closed before this was accepted'));
  }

  async #send() {
    this.busy = true;
    try {
      for (let next; !this.ended && (next = this.writes.find((each) => each.state !== 'accepted'));) {
        const wait = await this.#post(next);
        if (wait === null) continue;
        if (!this.ended) this.timer = setTimeout(() => this.hurry(), wait);
        return;
      }
    } finally {
      this.busy = false;
    }
  }

  /** Send one; return null when its fate is known, or how long to wait. @param {Write} one */
  async #post(one) {
    if (one.triedAt !== undefined && Date.now() - one.triedAt > KEPT_MS) {
      this.#refuse(one, { code: 'client.too-late', detail: 'this was sent long ago, and nobody knows whether it arrived' });
      return null;
    }
    if (one.triedAt === undefined) {
      one.triedAt = Date.now();
      this.#store(this.writes);
    }
    one.state = 'sent';
    let afterMs = 0;
    try {
      const answer = await this.#request(one);
      if (answer.ok) {
        const { partition, offset } = parse(await answer.text());
        this.#accept(one, { partition, offset });
        return null;
      }
      const why = await refusal(answer);
      this.problem = why.problem;
      afterMs = why.afterMs ?? 0;
      const status = why.status ?? 0;
      if (status >= 400 && status < 500 && status !== 401 && !REPEATABLE.has(status) && why.problem.code !== 'http') {
        this.#refuse(one, why.problem);
        return null;
      }
    } catch (error) {
      this.problem = { code: 'client.unreachable', detail: String(error) };
    }
    one.state = 'waiting';
    this.failures += 1;
    const { firstWaitMs, longestWaitMs, random } = this.options;
    const whole = Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(this.failures - 1, 30));
    return Math.max(afterMs, whole * (0.5 + random() / 2));
  }

  /** @param {Write} one */
  async #request(one) {
    const token = await this.options.token();
    return fetch(`${this.options.url}/v1/streams/${encodeURIComponent(one.stream)}/records`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': one.id, ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      body: write(one.record),
      signal: AbortSignal.timeout(SEND_MS),
    });
  }

  /** @param {Write} one @param {any} sent */
  #accept(one, sent) {
    [this.failures, this.problem] = [0, null];
    [one.state, one.acceptedAt] = ['accepted', performance.now()];
    this.#store(this.writes);
    this.promised.get(one.id)?.resolve(sent);
    this.promised.delete(one.id);
    this.options.tell.accepted(one);
    this.options.tell.changed();
  }

  /** @param {Write} one @param {any} problem */
  #refuse(one, problem) {
    this.failures = 0;
    this.forget(one);
    const error = new Refused(one, problem);
    this.promised.get(one.id)?.reject(error);
    this.promised.delete(one.id);
    this.options.tell.refused(error);
  }

  /** @param {readonly Write[]} writes */
  #store(writes) {
    this.shelf?.keep(writes.filter((each) => each.state !== 'accepted').map(({ state, acceptedAt, ...rest }) => rest));
  }

  /** @param {readonly any[]} writes Of a page that is gone. */
  #adopt(writes) {
    const known = new Set(this.writes.map((each) => each.id));
    const missing = writes.filter((each) => !known.has(each.id));
    this.writes.unshift(...missing.map((each) => ({ ...each, state: /** @type {const} */ ('waiting') })));
    this.#store(this.writes);
    this.options.tell.changed();
    this.hurry();
  }
}
