// @ts-check
// The words for what a person's own seat hears, in a game that the general view draws: the arena makes them of the events themselves.

import { openViewer } from "../api.js";

/** @typedef {{event: any, answers?: any, isPast?: boolean}} Entry  answers: the question of an answer */

/** Events on their way to the arena and back, in order. */
export class Captioned {
  /**
   * @param {string} game
   * @param {number} seat
   * @param {string[]} players
   * @param {(entries: Entry[]) => void} onReady  called with events that have their words
   */
  constructor(game, seat, players, onReady) {
    this._game = game;
    this._seat = seat;
    this._players = players;
    this._onReady = onReady;
    /** @type {Entry[]} */
    this._waiting = []; // not sent yet
    /** @type {Entry[]} */
    this._sent = [];
    /** @type {any} */
    this._socket = null;
    this._timer = 0;
  }

  get isBehind() {
    return this._waiting.length + this._sent.length > 0;
  }

  /** @param {Entry} entry */
  put(entry) {
    this._waiting.push(entry);
    // All events of one message go together.
    if (this._waiting.length === 1) queueMicrotask(() => this._send());
  }

  /** Take back an answer that the arena has refused; false if it is shown already. */
  withdraw() {
    const last = [...this._sent, ...this._waiting].at(-1);
    if (last?.event.event !== "answered") return false;
    if (this._waiting.at(-1) === last) this._waiting.pop();
    else this._sent[this._sent.length - 1] = { ...last, event: null };
    return true;
  }

  close() {
    clearTimeout(this._timer);
    this._socket?.close();
    this._socket = null;
  }

  _send() {
    if (this._sent.length || !this._waiting.length) return;
    const described = this._waiting.slice(0, MOST).map(withQuestion);
    this._sent = this._waiting.splice(0, fitting(described));
    this._socket ??= openViewer((message) => message.type === "captions" && this._ready(message.captions), () => this._lost());
    const events = described.slice(0, this._sent.length);
    this._socket.send({ type: "describe", game: this._game, seat: this._seat, players: this._players, events });
  }

  /** @param {any[]} captions */
  _ready(captions) {
    const ready = this._sent.map((entry, at) => ({ ...entry, event: entry.event && { ...entry.event, ...captions[at] } }));
    this._sent = [];
    this._onReady(ready.filter(({ event }) => event));
    if (this._waiting.length) this._timer = setTimeout(() => this._send(), PAUSE_MS);
  }

  /** Without the arena's words the game goes on. */
  _lost() {
    this._socket = null;
    if (this._sent.length) this._ready([]);
  }
}

const MOST = 100; // events of a message; the arena takes 200
const MOST_BYTES = 32 * 1024; // of them; the arena takes frames of 64 KiB
const PAUSE_MS = 60; // before the next message; the arena takes 20 a second

/** An event as the arena puts it into words. @param {Entry} entry */
function withQuestion({ event, answers }) {
  return answers ? { ...event, question: answers } : event;
}

/** How many of the first events fit into a message, at least one. @param {any[]} events */
function fitting(events) {
  const text = new TextEncoder();
  let left = MOST_BYTES;
  const tooMany = events.findIndex((event) => (left -= text.encode(JSON.stringify(event)).length + 1) < 0);
  return tooMany < 0 ? events.length : Math.max(1, tooMany);
}
