// The copy of a result, by the messages of a gateway: docs/live-protocol.md says what each of them means.

import { keyOf, readable } from './values.js';

/** Messages were lost: an event does not fit the copy. */
export class Lost extends Error {}

/**
 * @typedef {{what: "add" | "change" | "changeIndex" | "remove", operation?: string, index?: number, document: any}} LiveEvent
 * What became of one document.
 */

export class Replica {
  constructor() {
    this.ordered = false;
    this.ready = false;
    this.number = 0;
    this.token = '';
    /** @type {string[]} */
    this.keys = [];
    /** @type {Map<string, any>} */
    this.held = new Map();
    /** @type {any[] | null} */
    this.coming = null;
  }

  /** The result, in its order. */
  get documents() { return this.keys.map((key) => this.held.get(key)); }

  /** @param {any} id */
  find(id) { return this.held.get(keyOf(id)); }

  /**
   * Take a message; return what is new by it: the events, `"result"` for a whole result, or null.
   * @param {any} message
   * @returns {LiveEvent[] | "result" | null}
   */
  take(message) {
    if (typeof message.token === 'string') this.token = message.token;
    if (message.type === 'begin') [this.ordered, this.coming] = [message.ordered, []];
    else if (message.type === 'first') for (const each of message.documents) this.coming?.push(each);
    else if (message.type === 'ready') return this.#replace(this.coming ?? [], message);
    else if (message.type === 'results') return this.#replace(message.documents, message);
    else if (message.type === 'changes') return this.#change(message);
    else if (message.type === 'resumed') [this.number, this.ready] = [message.number, true];
    else if (message.type === 'must-refetch') [this.ready, this.token] = [false, ''];
    return null;
  }

  /** @param {any[]} documents @param {any} message @returns {"result"} */
  #replace(documents, message) {
    this.held = new Map(documents.map((each) => [keyOf(each._id), readable(each)]));
    this.keys = [...this.held.keys()];
    [this.coming, this.number, this.ready] = [null, message.number, true];
    return 'result';
  }

  /** @param {any} message @returns {LiveEvent[]} */
  #change(message) {
    if (message.after !== this.number) throw new Lost(`changes after ${this.number} are missing`);
    const events = message.events.map((/** @type {any} */ each) => ({ ...each, document: readable(each.document) }));
    const keys = message.events.map((/** @type {any} */ each) => keyOf(each.document._id));
    if (message.squashed) {
      events.forEach((/** @type {LiveEvent} */ each, /** @type {number} */ at) => {
        if (each.what === 'remove' || each.what === 'changeIndex') this.#takeOut(keys[at]);
      });
    }
    events.forEach((/** @type {LiveEvent} */ each, /** @type {number} */ at) => {
      if (!message.squashed && (each.what === 'remove' || each.what === 'changeIndex')) this.#takeOut(keys[at]);
      if (each.what !== 'remove') this.#put(keys[at], each);
    });
    this.number = message.number;
    return events;
  }

  /** @param {string} key @param {LiveEvent} event */
  #put(key, event) {
    if (event.what === 'change') {
      if (!this.held.has(key)) throw new Lost(`the result has no ${key}`);
    } else if (this.held.has(key)) throw new Lost(`the result has ${key} already`);
    else this.keys.splice(event.index ?? this.keys.length, 0, key);
    this.held.set(key, event.document);
  }

  /** @param {string} key */
  #takeOut(key) {
    if (!this.held.delete(key)) throw new Lost(`the result has no ${key}`);
    this.keys.splice(this.keys.indexOf(key), 1);
  }
}
