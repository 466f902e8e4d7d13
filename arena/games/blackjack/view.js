// @ts-check
// Blackjack (rules B): the player against the dealer, whose second card stays face down until the player stands.

import { html } from "../../lib/preact.js";
import { cardName, count, number } from "../../format.js";
import { DealerTable } from "../../table/dealer_table.js";
import { blank, common, isNext, isTold, put } from "../../table/reducer.js";
import { Amount, Buttons } from "../../table/moves.js";

const ENDS = {
  natural: "a natural",
  bust: "bust",
  dealer_busts: "the dealer busts",
  win: "the player's total is higher",
  lose: "the dealer's total is higher",
  push: "push",
};

/** As it comes out of its box (B1). */
const NEW_DECK = [..."shcd"].flatMap((suit) => [..."23456789TJQKA"].map((rank) => rank + suit));

/** A state before the first hand. */
export function start({ settings, players, view, scores, round = 1, deck = round === 1 && view?.kind === "all" ? NEW_DECK : null, hole = null }) {
  const state = { ...blank(players.length, scores), ...fresh(), round, hole, deck, first: settings?.bankroll ?? 100, hands: settings?.hands ?? null };
  return { ...state, bankroll: state.first + state.scores[0] };
}

/** What the end of a round says of its beginning. */
export function before(news, settings) {
  return { scores: [news.bankroll - news.payoff - settings.bankroll], hole: news.dealer[1] ?? null };
}

/** A deck after a deal: a whole one, or a cut of the one before (B2), if that is known. */
function shuffled(deck, deal) {
  if (Array.isArray(deal) || !deck) return Array.isArray(deal) ? deal : null;
  const [left, right] = [deck.slice(0, deal), deck.slice(deal)];
  return deck.flatMap((_, at) => [right[at], left[at]]).filter(Boolean);
}

/** The deck after all deals of a match, or after those from a whole one on. @param {(number|string[])[]} deals */
export function deckAfter(deals) {
  return deals.reduce(shuffled, NEW_DECK);
}

/** The card that lies face down, if the view may see it: the up-card, the player's second and this one are dealt in a row (B6). */
function holeOf({ deck, dealer, hole }, view) {
  if (view?.kind !== "all") return null;
  return deck ? (deck[deck.indexOf(dealer[0]) + 2] ?? null) : hole;
}

function fresh() {
  return { player: [], dealer: [], hole: null, bet: 0, outcome: null, payoff: null, shuffled: false, says: [""], done: false };
}

/** The state after an event. */
export function step(old, event) {
  const base = isNext(old, event) ? { ...old, ...fresh(), round: old.round + 1 } : old;
  const state = common(base, event);
  switch (event.event) {
    case "dealt":
      return { ...state, deck: shuffled(state.deck, event.deal) };
    case "asked":
      return asked(state, event.question);
    case "answered":
      return isTold(event) ? acted(state, base.turn?.kind, event.value) : state;
    case "told":
      return afterNews(state, event.news);
    case "over":
      return { ...state, bankroll: state.first + state.scores[0] };
    default:
      return state;
  }
}

function asked(state, question) {
  if (question.kind === "bet") return { ...state, bankroll: question.bankroll ?? state.bankroll, round: question.round ?? state.round };
  return question.hand ? { ...state, player: question.hand } : state;
}

function acted(state, kind, value) {
  return kind === "bet" ? { ...state, bet: value, says: [`bets ${number(value)}`] } : { ...state, says: [value === "hit" ? "hits" : "stands"] };
}

function afterNews(state, news) {
  switch (news.kind) {
    case "shuffled":
      return { ...state, shuffled: true };
    case "exposed":
      return { ...state, [news.to]: [...state[news.to], news.card] };
    case "hand_over":
      return {
        ...state, player: news.player, dealer: news.dealer, hole: null, bet: news.bet, outcome: news.outcome, payoff: news.payoff, bankroll: news.bankroll,
        scores: put(state.scores, 0, news.bankroll - state.first), done: true, turn: null,
      };
    default:
      return state;
  }
}

/** What a hand counts, and whether an ace counts 11 in it (B4). @param {string[]} cards */
function value(cards) {
  let total = 0;
  let ace = false;
  for (const [rank] of cards) {
    total += rank === "A" ? 1 : "TJQK".includes(rank) ? 10 : Number(rank);
    ace ||= rank === "A";
  }
  return ace && total <= 11 ? { total: total + 10, soft: true } : { total, soft: false };
}

function total(cards) {
  if (!cards.length) return "";
  const { total: sum, soft } = value(cards);
  return soft && sum < 21 ? `soft ${sum}` : String(sum);
}

/** What happened, in words; null for what is no step of its own. */
export function describe(event, players, before) {
  const [name] = players;
  if (event.event === "answered" && isTold(event)) {
    return before.turn?.kind === "bet" ? `${name} bets ${number(event.value)}` : `${name} ${event.value}s`;
  }
  if (event.event !== "told") return null;
  const { news } = event;
  if (news.kind === "shuffled") return "the deck is shuffled";
  if (news.kind === "hand_over") return ending(news, name);
  if (news.kind !== "exposed") return null;
  const after = total([...before[news.to], news.card]);
  if (news.to === "player") return `${name} is dealt the ${cardName(news.card)}: ${after}`;
  const what = before.dealer.length === 1 ? "turns over" : before.dealer.length ? "draws" : "shows";
  return `the dealer ${what} the ${cardName(news.card)}: ${after}`;
}

function ending({ outcome, payoff }, name) {
  const why = ENDS[outcome] ?? outcome;
  return payoff === 0 ? `${why}: the bet goes back` : `${why}: ${name} ${payoff > 0 ? "wins" : "loses"} ${number(Math.abs(payoff))}`;
}

/** The table. */
export function Table({ state, players, view, turn, clock }) {
  const { player, dealer, outcome, done } = state;
  const name = players[0];
  // The hole card lies there as soon as the deal is complete, and stays face down after a bust or a natural.
  const isDown = player.length >= 2 && dealer.length === 1;
  const hole = isDown ? holeOf(state, view) : null;
  const lost = state.payoff < 0;
  return html`<${DealerTable} game="blackjack" label="Blackjack table"
    sign=${html`Hand ${number(state.round)}${state.hands ? html` <small>of ${number(state.hands)}</small>` : null}`}
    dealer=${{ cards: isDown ? [...dealer, hole] : dealer, counts: total(dealer), label: `the dealer's cards${hole ? ", the second face down" : ""}`, look: lost ? "win" : "", peeks: hole, places: 2 }}
    mark=${outcome === "dealer_busts" ? html`<span class="mark bust">bust</span>` : null}
    bets=${[{ title: "bet", amount: state.bet, dim: lost }]}
    result=${done ? ending(state, "the player") : state.shuffled && !player.length ? "The deck is shuffled" : ""}
    hand=${{ cards: player, counts: total(player), label: `${name}'s cards`, look: state.payoff > 0 ? "win" : outcome === "bust" ? "dim" : "", places: 2 }}
    name=${name} score=${number(state.bankroll)} unit="chips" says=${state.says[0]} marks=${["natural", "bust", "push"].includes(outcome) ? [outcome] : []}
    turn=${state.turn?.seat === 0} clock=${turn ? clock : null} gain=${done ? state.payoff : null} total=${state.scores[0]} />`;
}

/** The legal moves of the person who plays. */
export function Moves({ question, state, onAnswer, disabled = false }) {
  if (!question) return null;
  if (question.kind === "bet") {
    const { min, max } = question.legal;
    const quick = [{ text: "Least", amount: min, key: "l" }, { text: "Twice", amount: 2 * min, key: "t" }, { text: "All", amount: max, key: "a" }];
    return html`<${Amount} key=${`bet ${question.round}`} range=${question.legal} quick=${quick} verb="Bet" first=${state?.bet || min} stride=${5}
      onAnswer=${onAnswer} disabled=${disabled} title=${`You have ${count(question.bankroll, "chip")}. Your bet?`} />`;
  }
  const { total: sum, soft, upcard } = question;
  return html`<${Buttons} key="draw" onAnswer=${onAnswer} disabled=${disabled}
    title=${`You have ${soft ? "soft " : ""}${sum}, the dealer shows the ${cardName(upcard)}.`}
    moves=${[{ value: "hit", text: "Hit", key: "h" }, { value: "stand", text: "Stand", key: "s" }]} />`;
}
