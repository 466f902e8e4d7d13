// @ts-check
// A recorded match: its rounds are fetched in pages when they are shown, and neighbours in advance.

import { MatchSteps } from "./steps.js";

const PAGE = 40; // rounds; the arena gives 50 at most
const MOST = 12; // pages
const NEAR = 10; // rounds from the end of a page: time to fetch the next

export class Record {
  /**
   * @param {any} game  the game's module
   * @param {any} document  /api/matches/ID.json
   * @param {(from: number, to: number) => Promise<{rounds: any[]}>} fetchRounds
   * @param {() => void} onChange
   */
  constructor(game, document, fetchRounds, onChange) {
    this.document = document;
    this.last = Math.max(1, document.rounds.length);
    this.match = new MatchSteps(game, { settings: document.settings, players: document.players, view: document.view });
    this.match.scoresAfter = (round) => document.rounds[round - 1];
    this.error = null;
    this._fetch = fetchRounds;
    this._onChange = onChange;
    /** Latest wanted last. @type {Map<number, string>} */
    this._pages = new Map();
  }

  /** Fetch a round and those around it, unless they are loaded. @param {number} round */
  want(round) {
    const page = pageOf(round);
    const around = [pageOf(Math.min(this.last, round + NEAR)), pageOf(Math.max(1, round - NEAR)), page];
    for (const each of new Set(around)) this._load(each);
    while (this._pages.size > MOST) this._drop([...this._pages.keys()].find((each) => !around.includes(each)) ?? page);
  }

  /** Try again what has failed. */
  again() {
    this.error = null;
    this._onChange();
  }

  _load(page) {
    const state = this._pages.get(page);
    if (!state && this.error) return;
    this._pages.delete(page);
    this._pages.set(page, state ?? "loading");
    if (state) return;
    const from = page * PAGE + 1;
    this._fetch(from, Math.min(this.last, from + PAGE - 1)).then(
      ({ rounds }) => {
        for (const round of rounds) this.match.put(round);
        this._pages.set(page, "here");
        this._onChange();
      },
      (error) => {
        this._pages.delete(page);
        this.error = error;
        this._onChange();
      },
    );
  }

  _drop(page) {
    this._pages.delete(page);
    for (let round = page * PAGE + 1; round <= (page + 1) * PAGE; round++) this.match.drop(round);
  }
}

function pageOf(round) {
  return Math.floor((round - 1) / PAGE);
}
