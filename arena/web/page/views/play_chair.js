// A person's seat: booked over the watch socket, then played over a bot's connection (protocol/README.md).
// What the seat hears becomes the events that spectators get, so that the same tables draw them.

import { openBot, openViewer } from "../api.js";
import { GAMES } from "../games/games.js";
import { load, save } from "../storage.js";
import { Captioned } from "./play_captions.js";

const RETRY_MS = [200, 500, 1000, 2000, 3000];
const STORED = "arena.chairs"; // in localStorage: with it any tab can continue at the table
const MINE = "arena.chair"; // in sessionStorage: this tab's own, also after a reload
const STORED_MS = 3 * 3600 * 1000; // by then every match of a person is over
const TAKEN_OVER = 4000;
const SECRET_BYTES = 16;

/** @typedef {{game: string, name: string, against: string[], settings?: object, token?: string}} Request */

/**
 * A person's request for a seat, its match and its connection.
 *
 * `phase` goes from "asking" over "waiting" and "playing" to "over" or "failed"; "lost" is a connection that is tried again, "elsewhere"
 * a seat that another tab has taken over.
 */
export class Chair {
  /**
   * @param {Request} request
   * @param {() => void} onChange called after every change here
   */
  constructor(request, onChange) {
    this.request = request;
    this.onChange = onChange;
    this.phase = "asking";
    this.text = "";
    /** @type {any} */
    this.table = null; // match, game, seat, players, settings, limits
    this.events = /** @type {any[]} */ ([]);
    this.seen = 0; // the number of those before this page was loaded
    this.question = null;
    /** @type {any} */
    this.asked = null; // the ask as it came, and when
    this.answered = null; // the latest answer, until the next question
    this.over = null;
    this.refusal = "";
    /** @type {Captioned | null} */
    this._captions = null; // of a game that is drawn by the general view
    this._nonce = secret();
    /** @type {any} */
    this._bot = null;
    /** @type {any} */
    this._viewer = null;
    this._tries = 0;
    this._isResumed = false;
    this._asks = new Set();
  }

  /** Ask for the seat. */
  sit() {
    const closed = () => {
      if (this.phase === "asking") this._fail("the connection to the arena is lost; try again");
    };
    this._viewer = openViewer((message) => this._onViewer(message), closed);
    this._viewer.send({ type: "sit", ...this.request });
    return this;
  }

  /** Answer the question that is open. */
  answer(value) {
    const { asked } = this;
    if (!asked || this.phase !== "playing" || this.answered) return;
    this.answered = { type: "answer", match: asked.message.match, ask: asked.message.ask, value };
    this.question = null;
    this.refusal = "";
    this._bot.send(this.answered);
    this._add({ event: "answered", seat: this.table.seat, value, took_ms: Math.round(performance.now() - asked.at) }, question(asked.message));
    this._changed();
  }

  /** Stand up: give up what is being played, or leave after the end. */
  leave() {
    clearTimeout(this._timer);
    this._isGone = true;
    if (!this.isDone) {
      this._viewer?.send({ type: "stand" });
      this._bot?.send({ type: "goodbye" });
      this._fail("you have stood up");
    }
    this._viewer?.close();
    this._captions?.close();
    this._bot?.close();
  }

  /** The match has ended, and its result is not known here. */
  ended() {
    this._fail("the match that was played here is over");
  }

  /** The time left for the answer: the decision's own, and with the bank; null if none is due. */
  clock(now = performance.now()) {
    if (!this.asked || !this.question) return null;
    const { decision_ms, bank_ms } = this.asked.message;
    const spent = now - this.asked.at;
    const hard = this.table.limits.hard_ms - spent;
    const own = Math.max(0, decision_ms - spent);
    const bank = bank_ms - Math.max(0, spent - decision_ms);
    return { own: Math.min(own, Math.max(0, hard)), left: Math.max(0, Math.min(own + bank, hard)) };
  }

  /** Whether this tab does not play: the match is over, or another tab has it. */
  get isDone() {
    return ["over", "failed", "elsewhere"].includes(this.phase);
  }

  /** Whether there are events that are not shown yet, as the arena puts them into words. */
  get isBehind() {
    return Boolean(this._captions?.isBehind);
  }

  /** The id of the match and its record; a bot gets only that of its seat. */
  get record() {
    return this.table.match.replace(/\.\d+$/, "");
  }

  // ---- the watch socket

  _onViewer(message) {
    if (message.type === "refused") {
      if (!this.table) this._fail(message.text);
    } else if (message.type === "seat") {
      if (this._bot) return;
      this._ticket = { name: message.name, token: message.token };
      this.phase = "waiting";
      this._join();
      this._changed();
    }
  }

  // ---- the bot's connection

  _join() {
    this._bot = openBot(
      (message) => this._onArena(message),
      (code) => this._onClose(code),
    );
    this._bot.send(this._hello());
  }

  _hello() {
    const hello = { type: "hello", protocol: 1, client: "the arena's page", games: [this.request.game], ...this._ticket };
    if (!this._session) return hello;
    // A page that was reloaded has no events yet and asks for all of them.
    return { ...hello, resume: this._session, ...(this._asks.size ? {} : { from: 0 }) };
  }

  _onArena(message) {
    switch (message.type) {
      case "welcome":
        this._session = message.session;
        this._tries = 0;
        if (this.phase === "lost") this.phase = this.table ? "playing" : "waiting";
        this._store();
        break;
      case "match":
        this._onMatch(message);
        break;
      case "past":
        this._onPast(message);
        break;
      case "ask":
        this._onAsk(message);
        break;
      case "over":
        this._onOver(message);
        break;
      case "refused":
        this._onRefused(message);
        break;
    }
    this._changed();
  }

  _onMatch({ match, game, seat, seats, settings, limits }) {
    this.table = { match, game, seat, players: seats, settings, limits };
    this.phase = "playing";
    if (GAMES[game] && !GAMES[game].view) {
      this._captions ??= new Captioned(game, seat, seats, (events) => this._show(events));
    }
    this._bot.send({ type: "ready", match, nonce: this._nonce });
    this._store();
  }

  _onPast(message) {
    if (this._asks.has(message.ask)) return;
    this._asks.add(message.ask);
    this._isPast = true;
    this._addNews(message.news);
    this._add({ event: "asked", seat: this.table.seat, question: question(message) });
    this._add({ event: "answered", seat: this.table.seat, value: message.answer }, question(message));
    this._isPast = false;
  }

  _onAsk(message) {
    if (this._asks.has(message.ask)) {
      // Repeated after a lost connection; the answer may not have arrived.
      if (this.answered?.ask === message.ask) this._bot.send(this.answered);
      return;
    }
    this._asks.add(message.ask);
    this.answered = null;
    this.refusal = "";
    this.asked = { message, at: performance.now() };
    this.question = question(message);
    this._addNews(message.news);
    this._add({ event: "asked", seat: this.table.seat, question: this.question });
  }

  _onOver(message) {
    if (this.over || !this.table) return;
    this._addNews(message.news);
    const { scores, termination } = message;
    this._add({ event: "over", scores, points: null, termination });
    this.over = message;
    this.question = null;
    this.phase = "over";
    this._forget();
    this._bot.send({ type: "goodbye" });
  }

  _onRefused(message) {
    this.refusal = message.text;
    if (message.ask && message.ask === this.asked?.message.ask) {
      // Practice: the question is open again, so the answer is no event.
      if (!this._captions?.withdraw() && this.events.at(-1)?.event === "answered") this.events.pop();
      this.answered = null;
      this.question = question(this.asked.message);
    } else if (message.code === "session" && this._isResumed) {
      this.ended();
    } else if (this.phase !== "over") {
      this._fail(message.text);
    }
  }

  _onClose(code) {
    if (this._isGone || this.isDone) return;
    if (code === TAKEN_OVER) {
      this.phase = "elsewhere";
      save(MINE, "", "sessionStorage"); // else two tabs take it from each other for ever
      return this._changed();
    }
    if (!this._session) return this._fail("the arena has closed the connection; try again");
    this.phase = "lost";
    const pause = RETRY_MS[Math.min(this._tries++, RETRY_MS.length - 1)];
    this._timer = setTimeout(() => this._join(), pause);
    this._changed();
  }

  // ---- events

  _addNews(news) {
    const { seat, players, game } = this.table;
    for (const one of news) {
      // Against the dealer all events are the player's.
      const isMine = players.length === 1 || GAMES[game]?.private.includes(one.kind);
      this._add({ event: "told", seat: isMine ? seat : null, news: one });
    }
  }

  /** @param {any} event @param {any} [answers]  the question of an answer */
  _add(event, answers) {
    const isPast = this._isPast;
    if (this._captions) this._captions.put({ event, answers, isPast });
    else this._show([{ event, isPast }]);
  }

  /** @param {{event: any, isPast?: boolean}[]} entries */
  _show(entries) {
    for (const { event, isPast } of entries) {
      this.events.push(event);
      if (isPast) this.seen = this.events.length;
    }
    if (this._captions) this._changed();
  }

  _fail(text) {
    this.phase = "failed";
    this.text = text;
    this.question = null;
    this._forget();
    this._changed();
  }

  _changed() {
    this.onChange();
  }

  _store() {
    const { request, _ticket: ticket, _session: session, _nonce: nonce } = this;
    const match = this.table && this.record;
    storeChairs({ ...chairs(), [ticket.token]: { request, ticket, session, nonce, match, at: Date.now() } });
    save(MINE, ticket.token, "sessionStorage");
  }

  _forget() {
    if (!this._ticket) return;
    const { [this._ticket.token]: _, ...others } = chairs();
    storeChairs(others);
    save(MINE, "", "sessionStorage");
  }

  /**
   * Continue at a table of this browser: that of a match, or this tab's before it was reloaded.
   * @param {() => void} onChange
   * @param {string} [match]
   * @returns {Chair | null} null if there is none
   */
  static resume(onChange, match) {
    const found = match ? ownChairs().find((one) => one.match === match) : chairs()[load(MINE, "sessionStorage")];
    if (!found) return null;
    const { request, ticket, session, nonce } = found;
    const chair = new Chair(request, onChange);
    Object.assign(chair, { _ticket: ticket, _session: session, _nonce: nonce });
    chair._isResumed = true;
    chair.phase = "lost";
    chair._join();
    return chair;
  }
}

/** This browser's seats in matches that may still be played. @returns {{match: string, request: Request}[]} */
export function ownChairs() {
  return Object.values(chairs()).filter((one) => one.match);
}

/** Remove the seats of a person who logs out, as another may use this computer next. @param {string} token */
export function forgetChairs(token) {
  storeChairs(Object.fromEntries(Object.entries(chairs()).filter(([, one]) => one.request.token !== token)));
}

/** All stored seats by their tokens. @returns {Record<string, any>} */
function chairs() {
  let found;
  try {
    found = JSON.parse(load(STORED) || "{}");
  } catch {
    found = {};
  }
  return Object.fromEntries(Object.entries(found).filter(([, one]) => Date.now() - one.at < STORED_MS));
}

function storeChairs(those) {
  save(STORED, Object.keys(those).length ? JSON.stringify(those) : "");
}

/** The fields of a question, without those of its `ask` or `past`. */
function question(message) {
  const { type, match, ask, news, bank_ms, decision_ms, answer, ...own } = message;
  return own;
}

function secret() {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
