// @ts-check
// The mistakes of a seat in a recorded match: where they stand among its steps and on its curve. Pure.

import { digitsFor, number } from "../format.js";

/**
 * @typedef {{round: number, turn: number, answer_text: string, best_text: string, cost: number, error: number|null, unit: string, grade: number}} Mark
 *   as in `/api/matches/ID/mistakes.json`
 */

export const SIGNS = ["", "?!", "?", "??"];
/** What a sign means, by grade; in the plural with an s. */
export const GRADES = ["", "inaccuracy", "mistake", "blunder"];

const ERRORS = 1.96; // standard errors that a 95 % interval reaches

/** What a mistake cost, with its 95 % interval: "0.4 chips", "3.1 [1.5, 4.7] % of the game". @param {Mark} mark */
export function costText({ cost, error, unit }) {
  const text = (value) => number(value, digitsFor(cost));
  const interval = error == null ? "" : ` [${text(cost - ERRORS * error)}, ${text(cost + ERRORS * error)}]`;
  return `${text(cost)}${interval}${unit && ` ${unit}`}`;
}

/** What would have been better, and by how much: "best was: checks (cost 0.4 chips)". @param {Mark} mark */
export function bestText(mark) {
  return `best was: ${mark.best_text} (cost ${costText(mark)})`;
}

/** The step at which a decision is seen, -1 without one. @param {import("./steps.js").Step[]} steps @param {number} seat @param {number} turn */
export function stepOf(steps, seat, turn) {
  return steps.findIndex(({ decided }) => decided.some((one) => one.seat === seat && one.turn === turn));
}

/** The marks of a round by step. @param {Mark[]} marks @param {number} round @param {import("./steps.js").Step[]|null} steps @param {number} seat */
export function marksOfRound(marks, round, steps, seat) {
  /** @type {Map<number, Mark>} */
  const found = new Map();
  for (const mark of steps ? marks : []) if (mark.round === round) found.set(stepOf(steps ?? [], seat, mark.turn), mark);
  return found;
}

/**
 * The next mistake after a moment; the first one after the last; null if there is none.
 * @param {Mark[]} marks  of the seat, in the order of play @param {number} seat @param {number} round @param {number} step
 * @param {import("./steps.js").Step[]|null} steps  those of the round, if they are there
 */
export function nextMark(marks, seat, round, step, steps) {
  const isAhead = (mark) => mark.round > round || (mark.round === round && !(steps && stepOf(steps, seat, mark.turn) <= step));
  return marks.find(isAhead) ?? marks[0] ?? null;
}

/** The worst, the worst first: by their grade, then by what they cost. @param {Mark[]} marks @param {number} most */
export function dearestOf(marks, most) {
  return [...marks].sort((one, other) => other.grade - one.grade || other.cost - one.cost).slice(0, most);
}

/** How many there are of each grade, the worst first: [[3, 2], [1, 5]]. @param {Mark[]} marks @returns {[number, number][]} */
export function gradesOf(marks) {
  return [3, 2, 1].map((grade) => /** @type {[number, number]} */ ([grade, marks.filter((mark) => mark.grade === grade).length])).filter(([, many]) => many);
}
