// @ts-check
// Gin rummy (rules G): two fans sorted into melds, the stock and the discard pile between them. How it is drawn: gin_table.js.
//
// A hand is a list of ten or eleven cards, null for those that the view may not see; what all saw being taken from the discard pile
// is known to all.

import { cardName, cardSign, list } from "../../format.js";
import { blank, common, isNext, isTold, put } from "../../table/reducer.js";
import { Moves, Table, ending } from "./gin_table.js";

export { Moves, Table };

const HAND = 10;
const DECK = 52;
const HIDDEN = Array(HAND).fill(null);

/** A state before the first round. */
export function start({ settings, players, scores, round = 1, points = [0, 0] }) {
  return { ...blank(players.length, scores), ...fresh(), round, game: null, points, target: settings?.target ?? 50, games: settings?.games ?? 1 };
}

/** What the end of a round says of its beginning. */
export function before(news) {
  return { points: news.scores.map((all, seat) => all - news.points[seat]) };
}

function fresh() {
  return {
    hands: [HIDDEN, HIDDEN],
    pile: [],
    stock: DECK - 2 * HAND - 1,
    drawn: null, // {seat, card, from}, between a draw and the discard
    discarded: null, // by whom, if an answer has shown it before the news
    knocker: null,
    ended: null,
    gameOver: null,
    starter: null,
    says: ["", ""],
    done: false,
  };
}

/** The state after an event. */
export function step(old, event) {
  const base = isNext(old, event, ["game_over"]) ? nextRound(old) : old;
  const state = common(base, event);
  switch (event.event) {
    case "dealt":
      return dealtAll(state, event.deal);
    case "asked":
      return asked(state, event.seat, event.question);
    case "answered":
      return isTold(event) ? answered(state, base.turn?.kind, event.seat, event.value) : state;
    case "told":
      return afterNews(state, event.seat ?? null, event.news);
    default:
      return state;
  }
}

function nextRound(before) {
  return { ...before, ...fresh(), round: before.round + 1, points: before.gameOver ? [0, 0] : before.points };
}

function dealtAll(state, deal) {
  const deck = deal.deck ?? deal; // a deck that somebody gave has no starter beside it (G4)
  return {
    ...state, hands: [deck.slice(0, HAND), deck.slice(HAND, 2 * HAND)], pile: [deck[2 * HAND]], stock: deck.length - 2 * HAND - 1,
    starter: deal.starter ?? state.starter,
  };
}

function asked(state, seat, question) {
  const known = question.hand ? { ...state, hands: put(state.hands, seat, question.hand) } : state;
  switch (question.kind) {
    case "offer":
      return known.pile.length || !question.upcard ? known : { ...known, pile: [question.upcard] };
    case "draw":
      return known.pile.length || !question.discard ? known : { ...known, pile: [question.discard] };
    case "turn":
      return toDiscard(state, seat, question);
    case "melds":
      // The other seat's melds are asked for only after a knock (G9).
      return state.knocker === null ? { ...known, knocker: 1 - seat, says: put(known.says, 1 - seat, "knocks") } : known;
    default:
      return known;
  }
}

/** A seat has its eleven cards; after two passes it was not asked where to draw from (G5). */
function toDiscard(state, seat, question) {
  if (!question.hand) return state;
  const taken = state.drawn ? state : draw(state, seat, "stock", question.drawn);
  return { ...taken, hands: put(taken.hands, seat, question.hand), drawn: { ...taken.drawn, card: question.drawn } };
}

function draw(state, seat, from, card) {
  const isStock = from === "stock";
  const got = isStock ? card : state.pile[state.pile.length - 1] ?? card;
  return {
    ...state,
    hands: put(state.hands, seat, [...state.hands[seat], got]),
    pile: isStock ? state.pile : state.pile.slice(0, -1),
    stock: isStock ? Math.max(0, state.stock - 1) : state.stock,
    drawn: { seat, card: got, from },
    discarded: null,
    says: put(["", ""], seat, isStock ? "draws" : `takes ${cardSign(got)}`),
  };
}

function discard(state, seat, card, knocks) {
  const hand = state.hands[seat];
  const at = hand.includes(card) ? hand.indexOf(card) : hand.indexOf(null);
  return {
    ...state,
    hands: put(state.hands, seat, hand.filter((_, index) => index !== at)),
    pile: [...state.pile, card],
    drawn: null,
    discarded: seat,
    knocker: knocks ? seat : state.knocker,
    says: put(state.says, seat, `${knocks ? "knocks, " : ""}discards ${cardSign(card)}`),
  };
}

function answered(state, kind, seat, value) {
  if (kind === "draw") return draw(state, seat, value, value === "discard" ? state.pile[state.pile.length - 1] : null);
  if (kind === "turn") return discard(state.drawn ? state : draw(state, seat, "stock", null), seat, value.discard, value.knock);
  return state;
}

function afterNews(state, seat, news) {
  switch (news.kind) {
    case "dealt":
      return dealt(state, seat, news);
    case "offered":
      return offered(state, news);
    case "turn":
      return turnTaken(state, news);
    case "round_over":
      return roundOver(state, news);
    case "game_over":
      return { ...state, gameOver: news, points: news.scores, scores: news.games };
    default:
      return state;
  }
}

function dealt(state, seat, news) {
  const hands = seat === null || !news.hand ? state.hands : put(state.hands, seat, news.hand);
  return { ...state, hands, pile: [news.upcard], starter: news.starter, round: news.round, game: news.game };
}

function offered(state, { seat, took }) {
  if (took) return draw(state, seat, "discard", null);
  return { ...state, says: put(state.says, seat, "passes"), turn: null };
}

function turnTaken(state, { seat, drew, card, discarded }) {
  if (state.discarded === seat && state.pile[state.pile.length - 1] === discarded) return { ...state, discarded: null, turn: null };
  const has = state.drawn?.seat === seat ? state : draw(state, seat, drew, card);
  const next = discard(has, seat, discarded, false);
  const what = drew === "stock" ? "draws" : `takes ${cardSign(has.drawn.card)}`;
  return { ...next, discarded: null, turn: null, says: put(next.says, seat, `${what}, discards ${cardSign(discarded)}`) };
}

function roundOver(state, news) {
  return {
    ...state, hands: news.hands, ended: news, knocker: news.knocker, points: news.scores, drawn: null, done: true, turn: null, says: ["", ""],
  };
}

/** What happened, in words; null for what is no step of its own. */
export function describe(event, players, before) {
  const name = players[event.seat ?? 0];
  if (event.event === "answered" && isTold(event)) return saidMove(event.value, before.turn?.kind, name, before);
  if (event.event === "asked" && event.question.kind === "melds" && before.knocker === null) return `${players[1 - event.seat]} knocks`;
  if (event.event !== "told") return null;
  const { news } = event;
  switch (news.kind) {
    case "offered":
      return `${players[news.seat]} ${news.took ? "takes" : "passes"} the up-card`;
    case "turn":
      return saidTurn(news, players[news.seat], before);
    case "round_over":
      return ending(news, players);
    case "game_over":
      return news.winner === null ? "the game is drawn" : `${players[news.winner]} wins the game, ${news.scores[news.winner]} to ${news.scores[1 - news.winner]}`;
    default:
      return null;
  }
}

function saidMove(value, kind, name, before) {
  if (kind === "draw") return value === "stock" ? `${name} draws from the stock` : `${name} takes the ${cardName(before.pile[before.pile.length - 1])}`;
  if (kind === "turn") return `${name} ${value.knock ? "knocks and " : ""}discards the ${cardName(value.discard)}`;
  if (kind === "melds") return value ? `${name} melds ${value.map((meld) => list(meld.map(cardName), 13)).join("; ") || "nothing"}` : `${name} leaves its melds to the referee`;
  return null; // what was said to an offer is told to all
}

function saidTurn(news, name, before) {
  if (before.discarded === news.seat) return null;
  const drew = before.drawn?.seat === news.seat ? "" : news.drew === "stock" ? "draws from the stock and " : `takes the ${cardName(news.card)} and `;
  return `${name} ${drew}discards the ${cardName(news.discarded)}`;
}
