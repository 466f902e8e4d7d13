// A person's chair: sits down over the watch socket, then plays over an ordinary bot's connection (protocol/README.md).
// What the seat hears is kept as the same events that spectators get, so that the same tables draw them.

import { openBot, openViewer } from "../api.js";
import { keep, kept } from "../storage.js";

const RETRY_MS = [200, 500, 1000, 2000, 3000];
const KEPT = "arena.chairs"; // in localStorage: any tab can go on at the table, if it says what this one would
const MINE = "arena.chair"; // in sessionStorage: which of them this tab sits on, also after it was loaded again
const KEPT_MS = 3 * 3600 * 1000; // by then every match of a person is over
const TAKEN_OVER = 4000;
const SECRET_BYTES = 16;

/** @typedef {{game: string, name: string, against: string[], settings?: object, token?: string}} Request */

/**
 * What a person asks for, and how far it has come.
 *
 * `phase` goes from "asking" over "waiting" and "playing" to "over" or "failed"; "lost" is a connection that is being mended, "elsewhere" a
 * chair that another tab has taken over.
 */
export class Chair {
  /**
   * @param {Request} request
   * @param {() => void} onChange told whenever anything here has changed
   */
  constructor(request, onChange) {
    this.request = request;
    this.onChange = onChange;
    this.phase = "asking";
    this.text = "";
    /** @type {any} */
    this.table = null; // match, game, seat, players, settings, limits
    this.events = /** @type {any[]} */ ([]);
    this.seen = 0; // so many of them were told before this page was loaded
    this.question = null;
    /** @type {any} */
    this.asked = null; // the ask as it came, and when
    this.answered = null; // the latest answer, until something newer has come
    this.over = null;
    this.refusal = "";
    this._nonce = secret();
    /** @type {any} */
    this._bot = null;
    /** @type {any} */
    this._viewer = null;
    this._tries = 0;
    this._wasKept = false;
    this._heard = new Set();
  }

  /** Ask for the chair. */
  sit() {
    const closed = () => {
      if (this.phase === "asking") this._fail("the connection to the arena is lost; try again");
    };
    this._viewer = openViewer((message) => this._onParlour(message), closed);
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
    this._add({ event: "answered", seat: this.table.seat, value, took_ms: Math.round(performance.now() - asked.at) });
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
    this._bot?.close();
  }

  /** The match has ended, and nobody knows any more how. */
  ended() {
    this._fail("the match that was played here is over");
  }

  /** What is left for the answer that is due: this decision's own time, and the bank beyond it; null if none is due. */
  clock(now = performance.now()) {
    if (!this.asked || !this.question) return null;
    const { decision_ms, bank_ms } = this.asked.message;
    const spent = now - this.asked.at;
    const hard = this.table.limits.hard_ms - spent;
    const own = Math.max(0, decision_ms - spent);
    const bank = bank_ms - Math.max(0, spent - decision_ms);
    return { own: Math.min(own, Math.max(0, hard)), left: Math.max(0, Math.min(own + bank, hard)) };
  }

  /** Whether there is nothing to give up here: the match is over, or another tab has it. */
  get isDone() {
    return ["over", "failed", "elsewhere"].includes(this.phase);
  }

  /** The id of the match, under which its record is found; a bot only ever hears that of its chair. */
  get record() {
    return this.table.match.replace(/\.\d+$/, "");
  }

  // ---- the parlour

  _onParlour(message) {
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
    // Nothing was heard yet by a page that was loaded again: it wants all of it once more.
    return { ...hello, resume: this._session, ...(this._heard.size ? {} : { from: 0 }) };
  }

  _onArena(message) {
    switch (message.type) {
      case "welcome":
        this._session = message.session;
        this._tries = 0;
        if (this.phase === "lost") this.phase = this.table ? "playing" : "waiting";
        this._keep();
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
    this._bot.send({ type: "ready", match, nonce: this._nonce });
    this._keep();
  }

  _onPast(message) {
    if (this._heard.has(message.ask)) return;
    this._heard.add(message.ask);
    this._tell(message.news);
    this._add({ event: "asked", seat: this.table.seat, question: question(message) });
    this._add({ event: "answered", seat: this.table.seat, value: message.answer });
    this.seen = this.events.length;
  }

  _onAsk(message) {
    if (this._heard.has(message.ask)) {
      // It came again after a lost connection: whether the answer had arrived nobody knows.
      if (this.answered?.ask === message.ask) this._bot.send(this.answered);
      return;
    }
    this._heard.add(message.ask);
    this.answered = null;
    this.refusal = "";
    this.asked = { message, at: performance.now() };
    this.question = question(message);
    this._tell(message.news);
    this._add({ event: "asked", seat: this.table.seat, question: this.question });
  }

  _onOver(message) {
    if (this.over || !this.table) return;
    this._tell(message.news);
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
      // Practice: the question stands, and its answer never was.
      if (this.events.at(-1)?.event === "answered") this.events.pop();
      this.answered = null;
      this.question = question(this.asked.message);
    } else if (message.code === "session" && this._wasKept) {
      this.ended();
    } else if (this.phase !== "over") {
      this._fail(message.text);
    }
  }

  _onClose(code) {
    if (this._isGone || this.isDone) return;
    if (code === TAKEN_OVER) {
      this.phase = "elsewhere";
      keep(MINE, "", "sessionStorage"); // else both would take it from each other for ever
      return this._changed();
    }
    if (!this._session) return this._fail("the arena has closed the connection; try again");
    this.phase = "lost";
    const pause = RETRY_MS[Math.min(this._tries++, RETRY_MS.length - 1)];
    this._timer = setTimeout(() => this._join(), pause);
    this._changed();
  }

  // ---- events

  _tell(news) {
    const { seat, players } = this.table;
    for (const one of news) {
      // Only a deal is told to a seat alone; the player against the dealer is told everything.
      const isMine = one.kind === "dealt" || players.length === 1;
      this._add({ event: "told", seat: isMine ? seat : null, news: one });
    }
  }

  _add(event) {
    this.events.push(event);
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

  _keep() {
    const { request, _ticket: ticket, _session: session, _nonce: nonce } = this;
    const match = this.table && this.record;
    keepChairs({ ...chairs(), [ticket.token]: { request, ticket, session, nonce, match, at: Date.now() } });
    keep(MINE, ticket.token, "sessionStorage");
  }

  _forget() {
    if (!this._ticket) return;
    const { [this._ticket.token]: _, ...others } = chairs();
    keepChairs(others);
    keep(MINE, "", "sessionStorage");
  }

  /**
   * Go on at a table of this browser's: at that of a match, or at the one where this tab sat before it was loaded again.
   * @param {() => void} onChange
   * @param {string} [match]
   * @returns {Chair | null} null if there is none
   */
  static kept(onChange, match) {
    const found = match ? ownChairs().find((one) => one.match === match) : chairs()[kept(MINE, "sessionStorage")];
    if (!found) return null;
    const { request, ticket, session, nonce } = found;
    const chair = new Chair(request, onChange);
    Object.assign(chair, { _ticket: ticket, _session: session, _nonce: nonce });
    chair._wasKept = true;
    chair.phase = "lost";
    chair._join();
    return chair;
  }
}

/** The chairs of this browser at matches that are being played, as far as it knows. @returns {{match: string, request: Request}[]} */
export function ownChairs() {
  return Object.values(chairs()).filter((one) => one.match);
}

/** Forget those of somebody who logs out: the next person at this computer is somebody else. @param {string} token */
export function forgetChairs(token) {
  keepChairs(Object.fromEntries(Object.entries(chairs()).filter(([, one]) => one.request.token !== token)));
}

/** All that are kept, by their tokens. @returns {Record<string, any>} */
function chairs() {
  let found;
  try {
    found = JSON.parse(kept(KEPT) || "{}");
  } catch {
    found = {};
  }
  return Object.fromEntries(Object.entries(found).filter(([, one]) => Date.now() - one.at < KEPT_MS));
}

function keepChairs(those) {
  keep(KEPT, Object.keys(those).length ? JSON.stringify(those) : "");
}

/** The question's own fields, as they stand in an `ask` or a `past`. */
function question(message) {
  const { type, match, ask, news, bank_ms, decision_ms, answer, ...own } = message;
  return own;
}

function secret() {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
