// Keeps one way to a gateway open for all subscriptions of a page: comes back with tokens, changes the way
// where one is blocked, and notices when nothing comes any more.

import { Lost } from './replica.js';
import { WAYS } from './ways.js';

/** @typedef {"idle" | "connecting" | "open" | "waiting" | "refused" | "closed"} State */
/** @typedef {keyof typeof WAYS} Way */

/**
 * @typedef {object} Subscription What a connection follows for somebody.
 * @property {() => any} request The message `subscribe`, without an id, with the token as of now.
 * @property {(message: any) => void} take Take a message; Lost, if it does not fit.
 * @property {() => void} forget Forget the token.
 * @property {(problem: any) => void} fail It cannot be followed.
 */
/**
 * @typedef {object} Options
 * @property {string} url
 * @property {() => string | Promise<string>} token
 * @property {readonly Way[]} ways
 * @property {number} silenceMs
 * @property {number} firstWaitMs
 * @property {number} longestWaitMs
 * @property {number} probeMs So long after another way has begun, the first one is tried again.
 * @property {() => number} random
 * @property {() => void} changed The state is another one.
 * @property {(message: any) => void} told A message that concerns everybody, such as `up-to-date`.
 */

const OPEN_MS = 10_000;
const GRACE_MS = 3_000;
const LONGEST_PROBE_MS = 1_800_000;
const STOPPING = 1012;
const UNKNOWN_CALLER = 'caller.unknown';
/** So often in a row does a way fail before another is tried. */
const FAILURES_OF_A_WAY = 2;

export class Connection {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    /** @type {State} */
    this.state = 'idle';
    /** @type {any} */
    this.problem = null;
    /** @type {Map<string, Subscription>} */
    this.followed = new Map();
    /** What the gateway could not follow just now. @type {Set<Subscription>} */
    this.resting = new Set();
    this.names = 0;
    this.place = 0;
    this.failures = 0;
    this.failuresOfWay = 0;
    this.round = 0;
    /** @type {import('./ways.js').SocketWay | import('./ways.js').EventsWay | null} */
    this.open = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.heardAt = 0;
    this.asked = false;
    this.probeMs = options.probeMs;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.probing = undefined;
    this.look = () => this.#look();
    this.online = () => this.hurry();
    this.offline = () => this.#cut();
    globalThis.addEventListener?.('online', this.online);
    globalThis.addEventListener?.('offline', this.offline);
    globalThis.document?.addEventListener('visibilitychange', this.look);
  }

  /** The way that is taken now, or next. */
  get way() { return this.options.ways[this.place]; }

  /** @param {Subscription} subscription @returns {() => void} What ends it. */
  follow(subscription) {
    const name = this.#add(subscription);
    if (this.state === 'idle') this.#connect();
    else this.open?.added({ type: 'subscribe', id: name, ...subscription.request() });
    return () => this.#leave(subscription);
  }

  /** Connect now, if it waits. */
  hurry() {
    if (this.state === 'waiting') this.#connect();
  }

  /** Go on with the token as it is now: on the same socket, or on a new connection. */
  async authenticate() {
    if (this.state === 'refused') {
      this.#connect();
      return;
    }
    const token = await this.options.token();
    if (this.state === 'open' && !this.open?.authenticate(token)) this.#connect();
  }

  close() {
    this.#end('closed');
    globalThis.removeEventListener?.('online', this.online);
    globalThis.removeEventListener?.('offline', this.offline);
    globalThis.document?.removeEventListener('visibilitychange', this.look);
  }

  /** The browser says that the network has gone: a socket would tell so only after a while. */
  #cut() {
    if (this.state !== 'open' && this.state !== 'connecting') return;
    this.open?.close();
    this.#failed({ problem: { code: 'client.offline', detail: 'the browser is offline' } });
  }

  /** @param {Subscription} subscription */
  #add(subscription) {
    this.names += 1;
    const name = `q${this.names}`;
    this.followed.set(name, subscription);
    return name;
  }

  /** @param {Subscription} subscription */
  #leave(subscription) {
    for (const [name, each] of this.followed) {
      if (each !== subscription) continue;
      this.followed.delete(name);
      if (this.followed.size) this.open?.removed(name);
    }
    this.resting.delete(subscription);
    if (!this.followed.size && !this.resting.size && this.state !== 'closed' && this.state !== 'refused') this.#end('idle');
  }

  /** @param {State} state */
  #end(state) {
    this.round += 1;
    clearTimeout(this.timer);
    clearTimeout(this.probing);
    this.probing = undefined;
    this.open?.close();
    this.open = null;
    this.#become(state);
  }

  /** @param {State} state */
  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.options.changed();
  }

  async #connect() {
    this.#end('connecting');
    const { round } = this;
    let token = '';
    try {
      token = await this.options.token();
    } catch (error) {
      if (round === this.round) this.#failed({ problem: { code: 'token', detail: String(error) } });
      return;
    }
    if (round !== this.round) return;
    if (!this.followed.size) {
      this.#end('idle');
      return;
    }
    const current = () => round === this.round;
    this.heardAt = performance.now();
    this.asked = false;
    this.open = new WAYS[this.way]({
      url: this.options.url,
      token,
      requests: () => [...this.followed].map(([id, each]) => ({ type: 'subscribe', id, ...each.request() })),
      heard: {
        began: () => { if (current()) this.#began(); },
        alive: () => { if (current()) [this.heardAt, this.asked] = [performance.now(), false]; },
        message: (message) => { if (current()) this.#take(message); },
        ended: (why) => { if (current()) this.#failed(why); },
      },
    });
    this.timer = setTimeout(this.look, OPEN_MS + WAYS[this.way].longestSilenceMs);
  }

  #began() {
    [this.problem, this.failuresOfWay] = [null, 0];
    this.#become('open');
    this.#watch(this.#silenceMs);
    if (this.place > 0) {
      if (this.probing === undefined) this.#probe(); // a poll that is answered must not put it off
    } else this.probeMs = this.options.probeMs;
  }

  /** Try the best way now and then, beside the one that works, and change to it when it works again. */
  #probe() {
    const { round } = this;
    this.probing = setTimeout(async () => {
      if (round !== this.round || this.state !== 'open') return;
      this.probeMs = Math.min(LONGEST_PROBE_MS, 2 * this.probeMs);
      const found = await this.#works(this.options.ways[0]);
      if (round !== this.round) return;
      if (!found) {
        this.#probe();
        return;
      }
      this.place = 0;
      this.#connect();
    }, this.probeMs);
  }

  /** @param {Way} name @returns {Promise<boolean>} */
  async #works(name) {
    if (name !== 'socket') return false;
    const token = await Promise.resolve(this.options.token()).catch(() => '');
    return new Promise((resolve) => {
      const tell = (/** @type {boolean} */ found) => {
        clearTimeout(limit);
        way.close();
        resolve(found);
      };
      const limit = setTimeout(() => tell(false), OPEN_MS);
      const heard = { began: () => tell(true), alive: () => {}, message: () => {}, ended: () => tell(false) };
      const way = new WAYS.socket({ url: this.options.url, token, requests: () => [], heard });
    });
  }

  get #silenceMs() { return this.options.silenceMs + WAYS[this.way].longestSilenceMs; }

  /** @param {number} milliseconds */
  #watch(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.look, milliseconds);
  }

  /** Look whether something still comes. A page that was frozen first gets what has come meanwhile. */
  #look() {
    if (this.state === 'waiting' && !globalThis.document?.hidden) this.hurry();
    if (this.state !== 'open' && this.state !== 'connecting') return;
    const limit = this.state === 'open' ? this.#silenceMs : OPEN_MS + WAYS[this.way].longestSilenceMs;
    const silence = performance.now() - this.heardAt;
    if (silence < limit) {
      this.#watch(limit - silence + 1);
    } else if (this.state === 'open' && !this.asked) {
      this.asked = true;
      this.open?.ping();
      this.#watch(Math.min(GRACE_MS, this.options.silenceMs));
    } else {
      this.open?.close();
      this.#failed({ problem: { code: 'client.silence', detail: 'nothing has come for too long' } });
    }
  }

  /** @param {any} message */
  #take(message) {
    if (message.type === 'error') {
      this.#refused(message);
      return;
    }
    const subscription = this.followed.get(message.id);
    if (message.id !== undefined) {
      if (message.type !== 'end' && subscription) this.#give(message, subscription);
      return;
    }
    if (message.type === 'up-to-date') this.failures = 0;
    this.options.told(message);
  }

  /** @param {any} message @param {Subscription} subscription */
  #give(message, subscription) {
    try {
      subscription.take(message);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      subscription.forget();
      this.#again(message.id, subscription, true);
    }
  }

  /**
   * Follow it under another name: what is still said under the former one concerns nobody.
   * @param {string} name @param {Subscription} subscription @param {boolean} leave
   */
  #again(name, subscription, leave) {
    this.followed.delete(name);
    if (leave) this.open?.removed(name);
    const next = this.#add(subscription);
    this.open?.added({ type: 'subscribe', id: next, ...subscription.request() });
  }

  /** @param {any} message */
  #refused(message) {
    const { problem } = message;
    if (!message.id) {
      this.problem = problem; // the connection ends now
      return;
    }
    const subscription = this.followed.get(message.id);
    if (!subscription) return;
    this.followed.delete(message.id);
    if (problem.code !== 'live.behind' && problem.status < 500 && problem.status !== 429) {
      subscription.fail(problem);
      return;
    }
    if (problem.code === 'live.behind') subscription.forget();
    this.failures += 1;
    this.resting.add(subscription);
    setTimeout(() => {
      if (!this.resting.delete(subscription) || this.state === 'closed') return;
      const name = this.#add(subscription);
      this.open?.added({ type: 'subscribe', id: name, ...subscription.request() });
    }, this.#wait());
  }

  /** @param {import('./ways.js').Ended} why */
  #failed(why) {
    this.open = null;
    this.round += 1;
    clearTimeout(this.timer);
    this.problem = why.problem ?? this.problem;
    const status = why.status ?? 0;
    if (status === 401 || this.problem?.code === UNKNOWN_CALLER) {
      this.#unknown();
      return;
    }
    if (status >= 400 && status < 500 && status !== 408 && status !== 429 && this.problem?.code !== 'http') {
      for (const [name, each] of [...this.followed]) {
        this.followed.delete(name);
        each.fail(this.problem);
      }
      this.#end('idle');
      return;
    }
    this.#later(why);
  }

  /** A token is asked for anew; if it has been refused as often as there are ways, nobody knows a better one. */
  #unknown() {
    this.failures += 1;
    if (this.failures > this.options.ways.length) {
      this.failures = 0;
      this.#become('refused');
      return;
    }
    this.#comeBackIn(this.#wait());
  }

  /** @param {import('./ways.js').Ended} why */
  #later(why) {
    const began = this.state === 'open';
    this.failures += 1;
    this.failuresOfWay += 1;
    const hopeless = !began && this.failuresOfWay >= FAILURES_OF_A_WAY && globalThis.navigator?.onLine !== false;
    if (hopeless) {
      this.place = (this.place + 1) % this.options.ways.length;
      this.failuresOfWay = FAILURES_OF_A_WAY - 1; // one try for each of the others
    }
    const soon = why.code === STOPPING && began ? this.options.random() * this.options.firstWaitMs : this.#wait();
    this.#comeBackIn(Math.max(soon, why.afterMs ?? 0));
  }

  /** @param {number} milliseconds */
  #comeBackIn(milliseconds) {
    this.#become('waiting');
    this.timer = setTimeout(() => this.hurry(), milliseconds);
  }

  /** Waits double from the first to the longest, and are random between half and all of that. */
  #wait() {
    const { firstWaitMs, longestWaitMs, random } = this.options;
    const whole = Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(Math.max(0, this.failures - 1), 30));
    return whole * (0.5 + random() / 2);
  }
}
