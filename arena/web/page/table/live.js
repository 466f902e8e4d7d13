// @ts-check
// A live match as the arena streams it: frames in, rounds out. Knows neither sockets nor the page.

import { MatchSteps, isAfter, isEnd } from "./steps.js";

const MOST = 60; // rounds that can be looked back to while it is played

export class Live {
  /** @param {any} game  the game's module @param {any} scene  the arena's `scene` */
  constructor(game, scene) {
    this.scene = scene;
    this.match = new MatchSteps(game, { settings: scene.settings, players: scene.players, view: scene.view });
    this.newest = scene.round;
    this.skipped = 0;
    this.decisions = 0;
    this.turn = null;
    this.turnAt = 0;
    this._held = 0;
    this.scores = scene.scores;
    this._after = new Map([[scene.round - 1, scene.scores]]);
    this.match.scoresAfter = (round) => this._after.get(round);
  }

  /** The newest round that is complete, or 0. */
  get complete() {
    return this.isComplete(this.newest) ? this.newest : this.match.has(this.newest - 1) ? this.newest - 1 : 0;
  }

  /** The oldest round that is loaded. */
  get oldest() {
    return Math.min(this.newest, ...this.match.rounds.keys());
  }

  /** The loaded round that is shown instead of one that was skipped or dropped. @param {number} round */
  nearest(round) {
    return this.match.has(round) ? round : this.beside(round, 1) ?? this.beside(round, -1) ?? this.newest;
  }

  /** The next loaded round after one (`way` 1) or before it (-1), or null: rounds may be skipped. @param {number} round @param {1|-1} way */
  beside(round, way) {
    let found = null;
    for (const each of this.match.rounds.keys()) {
      if ((each - round) * way > 0 && (found === null || (found - each) * way > 0)) found = each;
    }
    return found;
  }

  /** Keep a round as long as it is looked at, however fast the match goes on. @param {number} round */
  hold(round) {
    this._held = round;
  }

  /** Whether a round has ended. @param {number} round */
  isComplete(round) {
    return round < this.newest || this.match.hasEnd(this.match.rounds.get(round));
  }

  /**
   * More of the match. @param {any} frame  the arena's `events`
   * @param {number} now  in milliseconds
   */
  feed(frame, now) {
    const had = frame.reset ? null : this.match.rounds.get(frame.round);
    if (frame.reset) for (const round of [...this.match.rounds.keys()]) if (round >= frame.round) this.match.drop(round);
    let number = frame.round;
    let events = had ? [...had.events] : [];
    const { game } = this.match;
    const ends = (event) => isEnd(event, game);
    let ended = events.some(ends);
    // The scores before this round are known only if the round has not ended in this frame.
    if (!had && !frame.events.some(ends)) this._after.set(number - 1, frame.scores);
    for (const event of frame.events) {
      if (ended && !isAfter(event, game)) {
        this.match.put({ round: number, events });
        number += 1;
        events = [];
        ended = false;
      }
      events.push(event);
      ended ||= ends(event);
    }
    // A match that has not begun has an empty table.
    if (events.length || frame.reset) this.match.put({ round: number, events });
    this.newest = Math.max(number, frame.reset ? 0 : this.newest);
    this._after.set(ended ? number : number - 1, frame.scores);
    this.skipped += frame.skipped ?? 0;
    this.decisions = frame.decisions;
    this.scores = frame.scores;
    this.turn = frame.turn;
    this.turnAt = now;
    this._forget();
  }

  /** Where to look next while one follows, after a moment at `round` and `step`: {round, step}, or null to stay. */
  next(round, step) {
    const last = (this.match.steps(round)?.length ?? 1) - 1;
    if (!this.match.has(round)) {
      const first = this.complete || this.newest;
      return this.match.has(first) ? { round: first, step: 0 } : null;
    }
    if (!this.isComplete(round)) return step < last ? { round, step: last } : null;
    if (step < last) return { round, step: step + 1 };
    const { complete, newest } = this;
    if (complete > round) return { round: complete, step: 0 };
    const now = newest > round ? this.match.steps(newest) : null;
    return now && { round: newest, step: now.length - 1 };
  }

  _forget() {
    for (const round of this.match.rounds.keys()) {
      if (this.match.rounds.size <= MOST) break;
      if (round === this._held) continue;
      this.match.drop(round);
      this._after.delete(round - 1);
    }
  }
}
