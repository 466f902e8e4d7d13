// @ts-check
// What the reducers of all games share. A state is replaced, never changed, as matches are stepped back too.
//
// Every state has: scores (by seat), turn ({seat, kind} or null), says (by seat: what stands in its speech bubble), done (whether
// the round is over), over (the end of the match, or null) and began (whether something of the round has been seen).

/**
 * @typedef {{event: string, seat?: number|null, news?: any, question?: any, value?: any, deal?: any, scores?: number[], took_ms?: number,
 *   note?: string, points?: number[], termination?: {kind: string, seat: number|null, text: string}}} Event
 */

/**
 * A state before anything has happened.
 * @param {number} seats
 * @param {number[]|null|undefined} scores
 */
export function blank(seats, scores) {
  return {
    scores: scores ?? Array(seats).fill(0),
    turn: null,
    says: Array(seats).fill(""),
    done: false,
    over: null,
    began: false,
  };
}

/**
 * Turn and end, the same in all games: the state after an event as far as this goes.
 * @param {any} state
 * @param {Event} event
 */
export function common(state, event) {
  switch (event.event) {
    case "asked":
      return { ...state, began: true, turn: { seat: event.seat, kind: event.question.kind } };
    case "answered":
      return { ...state, turn: null };
    case "over":
      return { ...state, turn: null, over: event, scores: event.scores ?? state.scores };
    default:
      return { ...state, began: true };
  }
}

/**
 * Whether an event belongs to the next round: a round that is over is left with the first event that is not about its end.
 * @param {any} state
 * @param {Event} event
 * @param {string[]} follows  the kinds of news that may come after the end
 */
export function isNext(state, event, follows = []) {
  return state.done && event.event !== "over" && !follows.includes(event.news?.kind);
}

/** What the news that end a round say of its beginning, where a game's view does not say so itself. */
export function before({ scores, payoffs }) {
  return Array.isArray(scores) && Array.isArray(payoffs) ? { scores: scores.map((score, seat) => score - payoffs[seat]) } : {};
}

/** The list with one element replaced. @template T @param {T[]} list @param {number} at @param {T} value @returns {T[]} */
export function put(list, at, value) {
  return list.map((old, index) => (index === at ? value : old));
}

/** Whether the view saw what was answered; null is an answer, too. @param {Event} event */
export function isTold(event) {
  return event.value !== undefined;
}
