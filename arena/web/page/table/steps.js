// @ts-check
// A match as steps that can be gone forth and back. A step is an event that the game has words for; what comes with it without a word
// (a card dealt, a question put) belongs to the step before. Step 0 is how a round begins.

import { termination } from "../format.js";

/**
 * @typedef {{round: number, scores?: number[], events: any[]}} Round  scores: at its end
 * @typedef {{text: string, state: any, seat: number|null, note?: string, took?: number}} Step
 */

/** Whether the news ends a round. */
export function isEnd(event) {
  return event.event === "told" && (event.news.kind === "round_over" || event.news.kind === "hand_over");
}

/** The end of a match, in words. */
export function endOfMatch({ termination: end }, players) {
  if (end.kind === "completed") return "the match is over";
  const who = end.seat == null ? "" : `${players[end.seat]}: `;
  return `the match ends: ${who}${end.text || termination(end.kind)}`;
}

/** The rounds of one match that are at hand, and the steps that they come to. */
export class MatchSteps {
  /**
   * @param {any} game  the game's module
   * @param {{settings: any, players: string[], view: any}} scene
   */
  constructor(game, scene) {
    this.game = game;
    this.scene = scene;
    /** @type {Map<number, Round>} */
    this.rounds = new Map();
    /** By round, the scores at its end, as far as they are known without its events. @type {(round: number) => number[]|undefined} */
    this.scoresAfter = (round) => this.rounds.get(round)?.scores;
    this._told = new Map();
  }

  /** Have a round, or have it again with more events. @param {Round} round */
  put(round) {
    this.rounds.set(round.round, round);
    this._told.delete(round.round);
    const next = this.rounds.get(round.round + 1);
    // Only a round without its end leans on the one before it.
    if (next && !next.events.some(isEnd)) this._told.delete(round.round + 1);
  }

  /** Forget a round. @param {number} round */
  drop(round) {
    this.rounds.delete(round);
    this._told.delete(round);
  }

  /** Whether a round's events are at hand. @param {number} round */
  has(round) {
    return this.rounds.has(round);
  }

  /** The steps of a round, or null if it is not at hand. @param {number} number @returns {Step[]|null} */
  steps(number) {
    const round = this.rounds.get(number);
    if (!round) return null;
    let told = this._told.get(number);
    if (!told) {
      told = this._tell(round);
      this._told.set(number, told);
    }
    return told;
  }

  _beginning(round) {
    const end = round.events.find(isEnd);
    const before = round.round - 1;
    const scores = before === 0 ? undefined : this.scoresAfter(before);
    if (!end && this.rounds.has(before)) {
      const left = this.steps(before)?.at(-1)?.state;
      return left && scores ? { ...left, scores } : left;
    }
    const known = { ...this.scene, round: round.round, scores, deck: this._deck(before) };
    return this.game.start(end ? { ...known, ...this.game.before(end.news, this.scene.settings) } : known);
  }

  /** The deck at the end of a round, where one lasts for several, for a viewer who may see it. @param {number} number */
  _deck(number) {
    if (!this.game.deckAfter || this.scene.view.kind !== "all") return undefined;
    let deals = [];
    for (let at = number; at > 0 && !deals.some(Array.isArray); at--) {
      const round = this.rounds.get(at);
      if (!round) return undefined;
      deals = [...round.events.filter((event) => event.event === "dealt").map(({ deal }) => deal), ...deals];
    }
    return this.game.deckAfter(deals);
  }

  /** @returns {Step[]} */
  _tell(round) {
    const { players } = this.scene;
    let state = this._beginning(round);
    /** @type {Step[]} */
    const steps = [{ text: "", state, seat: null }];
    let silent = null; // an answer that says nothing to this view: what came of it is told next
    for (const event of round.events) {
      const text = event.event === "over" ? endOfMatch(event, players) : this.game.describe(event, players, state);
      state = this.game.step(state, event);
      if (text) {
        const said = event.event === "answered" ? event : silent;
        const seat = event.event === "told" ? (event.news.seat ?? null) : event.event === "answered" ? event.seat : null;
        steps.push({ text, state, seat, note: said?.note, took: said?.took_ms });
        silent = null;
      } else if (event.event === "answered") {
        silent = event; // the seat is to decide until it is seen what it did
      } else {
        steps[steps.length - 1].state = state;
      }
    }
    return steps;
  }
}
