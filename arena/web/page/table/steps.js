// @ts-check
// A match as steps, forward and back. A step is an event that the game has a text for; an event without one (a card dealt,
// a question asked) belongs to the step before. Step 0 is the beginning of a round.

import { termination } from "../format.js";

/**
 * @typedef {{round: number, scores?: number[], events: any[]}} Round  scores: at its end
 * @typedef {{seat: number, turn: number}} Decision  turn: which of the seat's questions of the round, from 1
 * @typedef {{text: string, state: any, seat: number|null, decided: Decision[], note?: string, took?: number}} Step  decided: what is answered by then, since the step before
 */

/** Whether an event is the news that end a round. @param {any} event @param {{closes: string}} game */
export function isEnd(event, game) {
  return event.event === "told" && event.news.kind === game.closes;
}

/** Whether an event that comes after the end of a round still belongs to it. @param {any} event @param {{follows: string[]}} game */
export function isAfter(event, game) {
  return event.event === "over" || game.follows.includes(event.news?.kind);
}

/** The end of a match, in words. */
export function endOfMatch({ termination: end }, players) {
  if (end.kind === "completed") return "the match is over";
  const who = end.seat == null ? "" : `${players[end.seat]}: `;
  return `the match ends: ${who}${end.text || termination(end.kind)}`;
}

/** The loaded rounds of one match, and their steps. */
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
    this._steps = new Map();
  }

  /** Add a round, or replace it by one with more events. @param {Round} round */
  put(round) {
    this.rounds.set(round.round, round);
    this._steps.delete(round.round);
    const next = this.rounds.get(round.round + 1);
    // Only a round without its end begins with the state of the one before.
    if (next && !this.hasEnd(next)) this._steps.delete(round.round + 1);
  }

  /** Drop a round. @param {number} round */
  drop(round) {
    this.rounds.delete(round);
    this._steps.delete(round);
  }

  /** Whether a round is loaded. @param {number} round */
  has(round) {
    return this.rounds.has(round);
  }

  /** Whether a round has ended. @param {Round|undefined} round */
  hasEnd(round) {
    return Boolean(round?.events.some((event) => isEnd(event, this.game)));
  }

  /** The steps of a round, or null if it is not loaded. @param {number} number @returns {Step[]|null} */
  steps(number) {
    const round = this.rounds.get(number);
    if (!round) return null;
    let steps = this._steps.get(number);
    if (!steps) {
      steps = this._tried(round);
      this._steps.set(number, steps);
    }
    return steps;
  }

  /** Go on with the general view, as the game's own has failed. @param {unknown} error */
  fall(error) {
    if (!this.game.fallback) throw error;
    this.game = this.game.fallback(error);
    this._steps.clear();
  }

  _tried(round) {
    try {
      return this._stepsOf(round);
    } catch (error) {
      this.fall(error);
      return this._stepsOf(round);
    }
  }

  _beginning(round) {
    const end = round.events.find((event) => isEnd(event, this.game));
    const before = round.round - 1;
    const scores = before === 0 ? undefined : this.scoresAfter(before) ?? this._scoresWithout(end?.gains, round.round);
    if (!end && this.rounds.has(before)) {
      const left = this.steps(before)?.at(-1)?.state;
      return left && scores ? { ...left, scores } : left;
    }
    const known = { ...this.scene, round: round.round, scores, deck: this._deck(before) };
    return this.game.start(end ? { ...known, ...this.game.before(end.news, this.scene.settings) } : known);
  }

  /** The scores before a round, from what it has brought. @param {number[]|undefined} gains @param {number} number */
  _scoresWithout(gains, number) {
    return gains && this.scoresAfter(number)?.map((score, seat) => score - gains[seat]);
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
  _stepsOf(round) {
    const { players } = this.scene;
    let state = this._beginning(round);
    /** @type {Step[]} */
    const steps = [{ text: "", state, seat: null, decided: [] }];
    const turns = players.map(() => 0);
    /** @type {Decision[]} */
    let decided = [];
    let silent = null; // an answer that this view does not see; the next event shows it
    for (const event of round.events) {
      const text = event.event === "over" ? endOfMatch(event, players) : this.game.describe(event, players, state);
      state = this.game.step(state, event);
      if (event.event === "answered") decided.push({ seat: event.seat, turn: (turns[event.seat] += 1) });
      if (text) {
        const answer = event.event === "answered" ? event : silent;
        const seat = event.event === "told" ? (event.news.seat ?? null) : event.event === "answered" ? event.seat : null;
        steps.push({ text, state, seat, decided, note: answer?.note, took: answer?.took_ms });
        silent = null;
        decided = [];
      } else if (event.event === "answered") {
        silent = event; // the turn stays until the view sees what the seat did
      } else {
        steps[steps.length - 1].state = state;
      }
    }
    steps[steps.length - 1].decided.push(...decided);
    return steps;
  }
}
