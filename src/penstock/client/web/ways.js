// Three ways to a gateway with the same messages: a WebSocket, server-sent events, and long polls.

import { parse, write } from './values.js';

/**
 * @typedef {object} Heard What a way tells of.
 * @property {() => void} began The gateway has answered.
 * @property {(message: any) => void} message A message of the gateway.
 * @property {() => void} alive A byte has come.
 * @property {(why: Ended) => void} ended Nothing more comes.
 */
/**
 * @typedef {object} Ended
 * @property {number} [status] The HTTP status of a refusal.
 * @property {any} [problem] The problem document of it.
 * @property {number} [code] The code of a WebSocket's end.
 * @property {number} [afterMs] Not to come again before.
 */
/**
 * @typedef {object} Given What a way is made of.
 * @property {string} url The address of the gateway, without a slash at its end.
 * @property {string} token
 * @property {() => any[]} requests The messages `subscribe` of everything that is followed now.
 * @property {Heard} heard
 */

const MOST_EVENT_CHARACTERS = 64 << 20;
const GATHER_MS = 20;
const FIRST_POLL_WAIT = '1s';
const POLL_WAIT = '25s';

/** @param {string} text */
export const base64url = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

/** One socket with many subscriptions, which come and go. */
export class SocketWay {
  static longestSilenceMs = 0;

  /** @param {Given} given */
  constructor({ url, token, requests, heard }) {
    const protocols = ['penstock.v1', ...(token ? [`penstock.token.${base64url(token)}`] : [])];
    this.socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/live`, protocols);
    /** @type {any} */
    this.problem = null;
    this.socket.onopen = () => {
      heard.began();
      for (const each of requests()) this.#say(each);
    };
    this.socket.onmessage = (event) => {
      heard.alive();
      const message = parse(event.data);
      if (message.type === 'error' && !message.id) this.problem = message.problem;
      heard.message(message);
    };
    this.socket.onclose = (event) => heard.ended({ code: event.code, problem: this.problem, status: this.problem?.status });
  }

  /** @param {any} request */
  added(request) { this.#say(request); }

  /** @param {string} id */
  removed(id) { this.#say({ type: 'unsubscribe', id }); }

  ping() { this.#say({ type: 'ping' }); }

  /** @param {string} token */
  authenticate(token) {
    this.#say({ type: 'authenticate', token });
    return true;
  }

  close() {
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
  }

  /** @param {any} message */
  #say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(write(message));
  }
}

/** What streams and polls have in common: a request for all subscriptions, made again when these change. */
class Asking {
  /** @param {Given} given */
  constructor(given) {
    this.given = given;
    this.ended = false;
    this.stop = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.gathering = undefined;
    this.again();
  }

  added() { this.changed(); }

  removed() { this.changed(); }

  ping() {}

  authenticate() { return false; }

  close() {
    this.ended = true;
    clearTimeout(this.gathering);
    this.stop.abort();
  }

  changed() {
    clearTimeout(this.gathering);
    this.gathering = setTimeout(() => this.again(), GATHER_MS);
  }

  again() {
    this.stop.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    const finish = (/** @type {Ended} */ why) => {
      if (this.ended || signal.aborted) return;
      this.close();
      this.given.heard.ended(why);
    };
    this.run(signal).then(finish, () => finish({}));
  }

  /**
   * @param {AbortSignal} _signal
   * @returns {Promise<Ended>}
   */
  async run(_signal) { return {}; }

  /** @param {string} path @param {any} body @param {AbortSignal} signal */
  ask(path, body, signal) {
    const { url, token } = this.given;
    return fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      body: write(body),
      cache: 'no-store',
      signal,
    });
  }
}

/** A stream of server-sent events. The subscriptions are fixed, so it begins anew when they change. */
export class EventsWay extends Asking {
  static longestSilenceMs = 0;

  /** @override @param {AbortSignal} signal */
  async run(signal) {
    const { requests, heard } = this.given;
    const answer = await this.ask('/v1/live/events', { subscribe: requests() }, signal);
    if (!answer.ok || !answer.body) return refusal(answer);
    heard.alive();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = '';
    let problem = null;
    for (let first = true; ; first = false) {
      const { done, value } = await reader.read();
      if (signal.aborted || done) return { problem, status: problem?.status };
      if (first) heard.began(); // only now: something between may hold a stream back
      heard.alive();
      const ends = (held.slice(-1) + value).includes('\n\n');
      held += value;
      if (held.length > MOST_EVENT_CHARACTERS) throw new RangeError('the event is too large');
      if (!ends) continue;
      const events = held.split('\n\n');
      held = /** @type {string} */ (events.pop());
      for (const event of events) {
        const data = event.split('\n').find((line) => line.startsWith('data: '));
        if (!data) continue;
        const message = parse(data.slice('data: '.length));
        if (message.type === 'error' && !message.id) problem = message.problem;
        heard.message(message);
        if (signal.aborted) return {};
      }
    }
  }
}

/** A request that is answered when there is something to tell, again and again. */
export class PollWay extends Asking {
  static longestSilenceMs = 25_000;

  /** @override @param {AbortSignal} signal */
  async run(signal) {
    const { requests, heard } = this.given;
    for (let wait = FIRST_POLL_WAIT; ; wait = POLL_WAIT) {
      clearTimeout(this.gathering); // what has changed is in this request
      const subscribe = requests();
      if (!subscribe.length) return {};
      const answer = await this.ask('/v1/live/poll', { subscribe, wait }, signal);
      if (!answer.ok) return refusal(answer);
      const { messages } = parse(await answer.text());
      if (signal.aborted) return {};
      heard.began();
      heard.alive();
      for (const message of messages) {
        heard.message(message);
        if (signal.aborted) return {};
      }
    }
  }
}

/**
 * Return what a refusal says.
 * @param {Response} answer
 * @returns {Promise<Ended>}
 */
export async function refusal(answer) {
  const afterMs = 1000 * Number(answer.headers.get('Retry-After')) || 0;
  let problem = null;
  try {
    problem = await answer.json();
  } catch { /* something between the gateway and here has answered */ }
  if (typeof problem?.code !== 'string') problem = { code: 'http', status: answer.status, detail: `HTTP ${answer.status}` };
  return { status: answer.status, problem, afterMs };
}

export const WAYS = { socket: SocketWay, events: EventsWay, poll: PollWay };
