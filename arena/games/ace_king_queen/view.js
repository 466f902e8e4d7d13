// @ts-check
// Ace-King-Queen (rules A): two seats face to face, a card each, the pot between them.

import { html } from "../../lib/preact.js";
import { cardName, count, signed } from "../../format.js";
import { Card, Chips } from "../../table/cards.js";
import { blank, common, isNext, isTold, put } from "../../table/reducer.js";
import { Buttons } from "../../table/moves.js";
import { Felt, Result, Seat, Sign } from "../../table/seats.js";

const ANTE = 1;
const DOES = { bet: "bets 1", check: "checks", call: "calls", fold: "folds" };

/** A state before the first hand. */
export function start({ players, scores, round = 1 }) {
  return { ...blank(players.length, scores), ...fresh(), round };
}

function fresh() {
  return {
    cards: [null, null],
    chips: [ANTE, ANTE],
    bettor: null,
    open: null,
    response: null,
    payoffs: null,
    says: ["", ""],
    done: false,
  };
}

/** The state after an event. */
export function step(old, event) {
  const base = isNext(old, event) ? { ...old, ...fresh(), round: old.round + 1 } : old;
  const state = common(base, event);
  switch (event.event) {
    case "dealt":
      return { ...state, cards: [event.deal[0], event.deal[1]] };
    case "asked":
      return asked(state, event.seat, event.question);
    case "answered":
      return isTold(event) ? acted(state, base.turn?.kind, event.seat, event.value) : state;
    case "told":
      return event.news.kind === "hand_over" ? handOver(state, event.news) : state;
    default:
      return state;
  }
}

function asked(state, seat, question) {
  const isOpen = question.kind === "open";
  const bettor = isOpen ? seat : 1 - seat;
  const known = { ...state, bettor, round: question.round ?? state.round };
  // That the caller is asked says that there was a bet (A4).
  const next = isOpen || known.open ? known : acted(known, "open", bettor, "bet");
  return question.card ? { ...next, cards: put(next.cards, seat, question.card) } : next;
}

function acted(state, kind, seat, value) {
  const chips = value === "bet" || value === "call" ? put(state.chips, seat, ANTE + 1) : state.chips;
  return { ...state, chips, says: put(state.says, seat, DOES[value] ?? ""), [kind === "respond" ? "response" : "open"]: value };
}

function handOver(state, news) {
  let next = { ...state, bettor: news.bettor };
  next = acted(next, "open", news.bettor, news.open);
  if (news.response) next = acted(next, "respond", 1 - news.bettor, news.response);
  return { ...next, turn: null, cards: news.cards, payoffs: news.payoffs, scores: news.scores, round: news.round, done: true };
}

/** What happened, in words; null for what is no step of its own. */
export function describe(event, players, before) {
  if (event.event === "asked" && event.question.kind === "respond" && !before.open) {
    return `${players[1 - event.seat]} bets 1`;
  }
  if (event.event === "answered" && isTold(event)) return `${players[event.seat]} ${DOES[event.value] ?? event.value}`;
  if (event.event !== "told" || event.news.kind !== "hand_over") return null;
  const { news } = event;
  const did = [];
  if (!before.open) did.push(`${players[news.bettor]} ${DOES[news.open]}`);
  if (news.response && !before.response) did.push(`${players[1 - news.bettor]} ${DOES[news.response]}`);
  const winner = news.payoffs[0] > 0 ? 0 : 1;
  const shown = players.map((name, seat) => `${name} has the ${cardName(news.cards[seat])}`).join(", ");
  return `${did.map((text) => `${text}; `).join("")}${shown}: ${players[winner]} wins ${Math.abs(news.payoffs[0])}`;
}

/** The table. */
export function Table({ state, players, turn, clock, me }) {
  const bottom = me ?? 0;
  const winner = state.payoffs ? (state.payoffs[0] > 0 ? 0 : 1) : null;
  const seat = (at, place) => html`<${Seat} key=${at} seat=${at} name=${players[at]} place=${place} score=${signed(state.scores[at])} unit="chips"
      gain=${state.payoffs ? state.payoffs[at] : null} turn=${state.turn?.seat === at} clock=${turn?.seat === at ? clock : null} says=${state.says[at]}
      role=${state.bettor === null ? "" : state.bettor === at ? "may bet" : "may call"} dim=${state.says[at] === "folds"}>
      <div class="hand"><${Card} card=${state.cards[at]} state=${winner === at ? "win" : winner === null ? "" : "lost"}
        label=${state.cards[at] ? `${players[at]}: ${cardName(state.cards[at])}` : `${players[at]}'s card, face down`} /></div>
    <//>`;
  const pot = state.chips[0] + state.chips[1];
  return html`<${Felt} game="akq" label="Ace-King-Queen table">
    ${seat(1 - bottom, "top")}
    <div class="middle">
      <${Sign}>Hand ${state.round}<//>
      <div class="pot">
        <div class="side"><${Chips} amount=${state.chips[1 - bottom]} /></div>
        <b class="total">${state.done ? "pot" : "in the pot"} ${count(pot, "chip")}</b>
        <div class="side"><${Chips} amount=${state.chips[bottom]} /></div>
      </div>
      <${Result} title=${winner === null ? "" : `${players[winner]} wins ${Math.abs(state.payoffs[0])}`}
        text=${winner === null ? "" : state.response === "fold" ? "without a showdown" : state.response ? "after a called bet" : "after a check"} />
    </div>
    ${seat(bottom, "bottom")}
  <//>`;
}

const MOVES = {
  bet: { text: "Bet 1", key: "b" },
  check: { text: "Check", key: "c" },
  call: { text: "Call 1", key: "c" },
  fold: { text: "Fold", key: "f" },
};

/** The legal moves of the person who plays. */
export function Moves({ question, onAnswer, disabled = false }) {
  if (!question) return null;
  const moves = question.legal.map((value) => ({ value, ...MOVES[value] }));
  return html`<${Buttons} moves=${moves} onAnswer=${onAnswer} disabled=${disabled}
    title=${`You have the ${cardName(question.card)}. ${question.kind === "open" ? "Bet or check?" : "The other seat has bet 1. Call or fold?"}`} />`;
}
