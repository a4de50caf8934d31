// What a page writes: kept until the gateway has it, sent in order, each once. It waits while the network is
// away, and with a storage also while the page is closed. What waits for one stream goes in batches.

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
 * @property {string} [batch] The key of the batch that it is sent in: all of it is on the log, once, or nothing.
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
const MOST_OF_A_BATCH = 100;
const MOST_CHARACTERS_OF_A_BATCH = 256 << 10;
/** Statuses after which the same request may succeed. */
const REPEATABLE = new Set([408, 425, 429]);
/** Refusals of the caller, the stream or the key: each write of a batch would be refused so. */
const OF_ALL = new Set(['idempotency.reused', 'caller.not-allowed', 'stream.unknown']);

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
   * @param {{changed: () => void, accepted: (writes: readonly Write[]) => void, refused: (error: Refused) => void}} options.tell
   */
  constructor(options) {
    this.options = options;
    /** @type {Write[]} */
    this.writes = [];
    /** @type {Map<string, {resolve: (sent: any) => void, reject: (error: Error) => void}>} */
    this.promised = new Map();
    this.failures = 0;
    /** So many go in a batch; fewer, where the gateway takes fewer. */
    this.most = MOST_OF_A_BATCH;
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
    write(given.record); // what cannot be sent is not promised, either
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

  /** Their effect is seen, or will not be. @param {readonly Write[]} writes */
  forget(writes) {
    const gone = new Set(writes);
    this.writes = this.writes.filter((each) => !gone.has(each));
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
      for (let next; !this.ended && (next = this.#next()).length;) {
        const wait = await this.#post(next);
        if (wait === null) continue;
        if (!this.ended) this.timer = setTimeout(() => this.hurry(), wait);
        return;
      }
    } finally {
      this.busy = false;
    }
  }

  /** What one request has: one write or a batch. It is noted before it goes, so that whoever goes on sends the same again. */
  #next() {
    const waiting = this.writes.filter((each) => each.state !== 'accepted');
    const [first] = waiting;
    if (!first) return [];
    if (first.batch) return until(waiting, (each) => each.batch !== first.batch);
    if (first.triedAt !== undefined) return [first];
    const found = this.#gathered(waiting);
    const now = Date.now();
    for (const each of found) [each.triedAt, each.batch] = [now, found.length > 1 ? first.id : undefined];
    try {
      this.#store(this.writes);
    } catch { // the storage is full: what cannot be noted goes by itself
      for (const each of found.slice(1)) untry(each);
      first.batch = undefined;
      return [first];
    }
    return found;
  }

  /** @param {readonly Write[]} waiting */
  #gathered(waiting) {
    // Where nobody can tell which pages are gone, another page may send the same, and makes other batches of it.
    if (this.shelf && !this.shelf.locks) return waiting.slice(0, 1);
    let characters = 0;
    const { stream } = waiting[0];
    const found = until(waiting.slice(0, this.most), (each) => {
      characters += write(each.record).length;
      return each.stream !== stream || each.triedAt !== undefined || characters > MOST_CHARACTERS_OF_A_BATCH;
    });
    return found.length ? found : waiting.slice(0, 1);
  }

  /** Send it; return null when something of its fate is known, or how long to wait. @param {readonly Write[]} sent */
  async #post(sent) {
    if (Date.now() - (sent[0].triedAt ?? 0) > KEPT_MS) {
      this.#refuse(sent, { code: 'client.too-late', detail: 'this was sent long ago, and nobody knows whether it arrived' });
      return null;
    }
    for (const each of sent) each.state = 'sent';
    let afterMs = 0;
    try {
      const answer = await this.#request(sent);
      if (answer.ok) {
        const found = parse(await answer.text());
        this.#accept(sent, sent[0].batch ? found.records : [found]);
        return null;
      }
      const why = await refusal(answer);
      this.problem = why.problem;
      afterMs = why.afterMs ?? 0;
      const status = why.status ?? 0;
      if (status >= 400 && status < 500 && status !== 401 && !REPEATABLE.has(status) && why.problem.code !== 'http') {
        this.#refused(sent, why.problem, status);
        return null;
      }
    } catch (error) {
      this.problem = { code: 'client.unreachable', detail: String(error) };
    }
    for (const each of sent) each.state = 'waiting';
    this.failures += 1;
    const { firstWaitMs, longestWaitMs, random } = this.options;
    const whole = Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(this.failures - 1, 30));
    return Math.max(afterMs, whole * (0.5 + random() / 2));
  }

  /** @param {readonly Write[]} sent */
  async #request(sent) {
    const [{ stream, id, batch, record }] = sent;
    const token = await this.options.token();
    return fetch(`${this.options.url}/v1/streams/${encodeURIComponent(stream)}/records`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': batch ?? id, ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      body: batch ? `[${sent.map((each) => write(each.record)).join()}]` : write(record),
      signal: AbortSignal.timeout(SEND_MS),
    });
  }

  /** @param {readonly Write[]} sent @param {readonly any[] | undefined} places */
  #accept(sent, places) {
    [this.failures, this.problem] = [0, null];
    const now = performance.now();
    for (const each of sent) [each.state, each.acceptedAt] = ['accepted', now];
    this.#store(this.writes);
    sent.forEach(({ id }, at) => {
      const { partition, offset } = places?.[at] ?? {};
      this.promised.get(id)?.resolve({ partition, offset });
      this.promised.delete(id);
    });
    this.options.tell.accepted(sent);
    this.options.tell.changed();
  }

  /** The gateway has taken nothing of it. Of a batch, only what is wrong is refused. @param {readonly Write[]} sent @param {any} problem @param {number} status */
  #refused(sent, problem, status) {
    if (!sent[0].batch || OF_ALL.has(problem.code)) {
      this.#refuse(sent, problem);
      return;
    }
    this.failures = 0;
    const mistakes = (problem.errors ?? []).filter((/** @type {any} */ each) => sent[each.index]);
    for (const each of sent) each.state = 'waiting';
    if (mistakes.length) {
      for (const { index, ...rest } of mistakes) this.#refuse([sent[index]], { ...problem, errors: undefined, ...rest });
    } else if (status === 413 && sent.length > 1) {
      this.most = sent.length >> 1;
      for (const each of sent.slice(this.most)) untry(each);
    } else {
      for (const each of sent) each.batch = undefined; // each by itself: what is wrong with one must not hold up the others
    }
  }

  /** @param {readonly Write[]} writes @param {any} problem */
  #refuse(writes, problem) {
    this.failures = 0;
    this.forget(writes);
    for (const each of writes) {
      const error = new Refused(each, problem);
      this.promised.get(each.id)?.reject(error);
      this.promised.delete(each.id);
      this.options.tell.refused(error);
    }
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

/**
 * Return what comes before the first that is so.
 * @param {readonly Write[]} writes @param {(write: Write) => boolean} stop
 */
function until(writes, stop) {
  const end = writes.findIndex(stop);
  return end < 0 ? [...writes] : writes.slice(0, end);
}

/** It may go into another batch. @param {Write} one */
function untry(one) {
  [one.triedAt, one.batch] = [undefined, undefined];
}
