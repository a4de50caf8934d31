// Where an outbox outlives its page. Each page has a shelf of its own, and takes over the shelves of pages that are gone.

import { parse, readable, write } from './values.js';

const LOOK_AGAIN_MS = 2000;

export class Shelf {
  /**
   * @param {Storage} storage
   * @param {string} prefix
   * @param {(writes: any[]) => void} adopt Take over what another page has left.
   */
  constructor(storage, prefix, adopt) {
    this.leave = () => {};
    this.storage = storage;
    this.prefix = prefix;
    this.name = `${prefix}${Array.from(crypto.getRandomValues(new Uint8Array(8)), (each) => each.toString(16).padStart(2, '0')).join('')}`;
    this.adopt = adopt;
    this.locks = globalThis.navigator?.locks; // only where pages are served securely
    const left = new Promise((resolve) => { this.leave = () => resolve(null); });
    this.locks?.request(this.name, () => left);
    queueMicrotask(() => this.#look());
    // A page that is loaded anew may come before its former self has gone.
    this.timer = setTimeout(() => this.#look(), LOOK_AGAIN_MS);
  }

  /** @param {readonly any[]} writes */
  keep(writes) {
    if (writes.length) this.storage.setItem(this.name, write(writes));
    else this.storage.removeItem(this.name);
  }

  close() {
    clearTimeout(this.timer);
    this.leave();
  }

  async #look() {
    const names = Array.from({ length: this.storage.length }, (_, at) => this.storage.key(at));
    for (const name of names) {
      if (!name?.startsWith(this.prefix) || name === this.name) continue;
      if (this.locks) await this.locks.request(name, { ifAvailable: true }, (lock) => { if (lock) this.#take(name); });
      else this.#take(name); // perhaps its page is alive: both send, and each record is written once
    }
  }

  /** @param {string} name */
  #take(name) {
    const text = this.storage.getItem(name);
    if (text === null) return;
    let writes = [];
    try {
      writes = parse(text).map((/** @type {any} */ each) => ({ ...each, record: readable(each.record), effects: readable(each.effects) }));
    } catch { /* nobody can read it: nothing is better than half of it */ }
    if (writes.length) this.adopt(writes);
    this.storage.removeItem(name); // after it is kept under another name
  }
}
