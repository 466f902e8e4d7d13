// @ts-check
// High-low (rules H): four seats round a table, a card each, the dealer-card in the middle.
// Everybody sees a swap, so whoever holds a former dealer-card holds a card that all know.

import { html } from "../../lib/preact.js";
import { cardName, number, signed } from "../../format.js";
import { Card, Chips } from "../../table/cards.js";
import { blank, common, isNext, put } from "../../table/reducer.js";
import { Buttons } from "../../table/moves.js";
import { Felt, Result, Seat, Sign } from "../../table/seats.js";

const SEATS = 4;
const NOBODY = [null, null, null, null];
const ORDER = "23456789TJQKA"; // H1: the ace, whose value is 1, is the highest
const SUITS = "cdhs";
/** Round the table as the clock goes, from the seat that is drawn at the bottom. */
const PLACES = ["bottom", "left", "top", "right"];

/** A state before the first round. */
export function start({ players, scores, round = 1 }) {
  return { ...blank(players.length, scores), ...fresh(), round, shuffle: null };
}

function fresh() {
  return {
    cards: NOBODY,
    known: NOBODY, // whose card all know: it was the dealer-card
    dealer: null,
    starter: null,
    bids: NOBODY,
    swapped: NOBODY,
    lastBid: null,
    payoffs: null,
    high: null,
    low: null,
    says: ["", "", "", ""],
    done: false,
  };
}

/** The state after an event. */
export function step(old, event) {
  const base = isNext(old, event) ? { ...old, ...fresh(), round: old.round + 1 } : old;
  const state = common(base, event);
  if (event.event === "asked") return asked(state, event.seat, event.question);
  if (event.event !== "told") return state;
  const { news } = event;
  switch (news.kind) {
    case "dealt":
      return dealt(state, event.seat, news);
    case "swapped":
      return swapped(state, news);
    case "bid":
      return bid(state, news);
    case "round_over":
      return roundOver(state, news);
    default:
      return state;
  }
}

function asked(state, seat, { card, dealer_card: dealer }) {
  return card ? { ...state, cards: put(state.cards, seat, card), dealer: dealer ?? state.dealer } : state;
}

function dealt(state, seat, news) {
  const cards = seat === null ? state.cards : put(state.cards, seat, news.card);
  return { ...state, cards, dealer: news.dealer_card, starter: news.starter, round: news.round, shuffle: news.shuffle };
}

function swapped(state, { seat, swapped: did, dealer_card: dealer }) {
  const says = put(state.says, seat, did ? "swaps" : "keeps");
  const next = { ...state, says, swapped: put(state.swapped, seat, did), turn: null };
  if (!did) return { ...next, dealer };
  return { ...next, cards: put(state.cards, seat, state.dealer), known: put(state.known, seat, state.dealer), dealer };
}

function bid(state, { seat, bid: amount }) {
  const says = put(state.says, seat, amount === "quit" ? "quits for 2" : `bids ${amount}`);
  return { ...state, says, bids: put(state.bids, seat, amount), lastBid: amount === "quit" ? state.lastBid : amount, turn: null };
}

function roundOver(state, news) {
  const cards = state.cards.map((card, seat) => news.cards[seat] ?? card);
  const stay = [0, 1, 2, 3].filter((seat) => news.cards[seat] !== null);
  stay.sort((a, b) => strength(news.cards[a]) - strength(news.cards[b]));
  return {
    ...state, cards, lastBid: news.last_bid, payoffs: news.payoffs, scores: news.scores, done: true, turn: null,
    low: stay[0] ?? null, high: stay[stay.length - 1] ?? null,
  };
}

/** The place of a card in the order of H1. */
function strength(card) {
  return SEATS * ORDER.indexOf(card[0]) + SUITS.indexOf(card[1]);
}

/** What happened, in words; null for what is no step of its own. */
export function describe(event, players, before) {
  if (event.event !== "told") return null;
  const { news } = event;
  switch (news.kind) {
    case "swapped":
      return news.swapped
        ? `${players[news.seat]} takes the ${cardName(before.dealer)}; the dealer-card is now the ${cardName(news.dealer_card)}`
        : `${players[news.seat]} keeps its card`;
    case "bid":
      return `${players[news.seat]} ${news.bid === "quit" ? "quits for 2" : `bids ${news.bid}`}`;
    case "round_over":
      return ended(roundOver(before, news), players);
    default:
      return null;
  }
}

function ended({ high, low, cards, payoffs }, players) {
  if (high === null) return "all four quit: each loses 2";
  if (high === low) return `${players[high]} alone stays: it wins ${payoffs[high]}`;
  const part = (seat, what) => `${players[seat]} has the ${what}, the ${cardName(cards[seat])}: ${signed(payoffs[seat])}`;
  return `${part(high, "highest")}; ${part(low, "lowest")}`;
}

/** What lies in the middle: what has been bid, quitters' 2 each. */
function pot({ bids, lastBid }) {
  const placed = bids.filter((one) => one !== null);
  const quits = placed.filter((one) => one === "quit").length;
  return 2 * quits + (lastBid ?? 0) * (placed.length - quits);
}

/** The table. */
export function Table({ state, players, turn, clock, me }) {
  const first = me ?? 0;
  const total = pot(state);
  return html`<${Felt} game="high-low" label="High-low table">
    ${PLACES.map((place, at) => Player({ state, players, turn, clock, seat: (first + at) % SEATS, place }))}
    <div class="middle">
      <${Sign}>${state.shuffle ? `Shuffle ${number(state.shuffle)} · ` : ""}Round ${number(state.round)}<//>
      <div class="dealer-card">
        <${Card} card=${state.dealer} label=${state.dealer ? `dealer-card: ${cardName(state.dealer)}` : "the dealer-card"} />
        <div class="pot">
          <span class="caption">dealer-card</span>
          <${Chips} amount=${total} label="in the pot" />
          ${state.lastBid ? html`<span class="caption">last bid <b>${state.lastBid}</b></span>` : null}
        </div>
      </div>
      <${Result} ...${result(state, players)} />
    </div>
  <//>`;
}

function result({ done, high, low, payoffs }, players) {
  if (!done) return {};
  if (high === null) return { title: "All quit", text: "each loses 2" };
  if (high === low) return { title: `${players[high]} stays alone`, text: `and wins ${payoffs[high]}` };
  return { title: "", text: "half the pot each" };
}

function Player({ state, players, turn, clock, seat, place }) {
  const { high, low, bids } = state;
  const marks = [];
  if (state.done && high === seat) marks.push("highest");
  if (state.done && low === seat) marks.push("lowest");
  if (!state.done && state.starter === seat) marks.push("first");
  const quit = bids[seat] === "quit";
  const wins = state.done && (high === seat || low === seat);
  const card = state.cards[seat];
  const name = players[seat];
  return html`<${Seat} key=${seat} seat=${seat} name=${name} place=${place} score=${signed(state.scores[seat])} marks=${marks} dim=${quit}
      turn=${state.turn?.seat === seat} clock=${turn?.seat === seat ? clock : null} gain=${state.payoffs ? state.payoffs[seat] : null}>
    <div class="hand">
      <${Card} card=${card} state=${`${wins ? "win" : ""} ${!state.done && state.known[seat] === card && card ? "known" : ""}`}
        label=${card ? `${name}: ${cardName(card)}` : `${name}'s card, face down`} />
      <div class="spoken">
        ${state.says[seat] ? html`<span class="bubble">${state.says[seat]}</span>` : null}
        ${bids[seat] !== null && !quit ? html`<${Chips} amount=${bids[seat]} />` : null}
      </div>
    </div>
  <//>`;
}

/** The legal moves of the person who plays. */
export function Moves({ question, onAnswer, disabled = false }) {
  if (!question) return null;
  const have = `You have the ${cardName(question.card)}.`;
  if (question.kind === "swap") {
    return html`<${Buttons} key="swap" onAnswer=${onAnswer} disabled=${disabled} title=${`${have} The dealer-card is the ${cardName(question.dealer_card)}.`}
      moves=${[{ value: "swap", text: "Swap with the dealer-card", key: "s" }, { value: "keep", text: "Keep my card", key: "k" }]} />`;
  }
  const moves = question.legal.map((value) =>
    value === "quit" ? { value, text: "Quit for 2", key: "q" } : { value, text: `Bid ${value}`, key: String(value % 10) });
  return html`<${Buttons} key="bid" moves=${moves} onAnswer=${onAnswer} disabled=${disabled} title=${`${have} Bid, at least what has been bid, or quit.`} />`;
}
