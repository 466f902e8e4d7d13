// @ts-check
// Three card poker (rules T): the player against the dealer, with an ante and a bet on playing.

import { html } from "../../lib/preact.js";
import { cardName, list, number } from "../../format.js";
import { DealerTable } from "../../table/dealer_table.js";
import { blank, common, isNext, isTold, put } from "../../table/reducer.js";
import { Amount, Buttons } from "../../table/moves.js";

const NO_HAND = [null, null, null];
const RANKS = "23456789TJQKA";
const FOLDED = -1;

/** A state before the first round. */
export function start({ settings, players, scores, round = 1 }) {
  const state = { ...blank(players.length, scores), ...fresh(), round, stake: settings?.stake ?? 1000, goal: settings?.goal ?? null };
  return { ...state, cash: state.stake + state.scores[0] };
}

/** The beginning of a round, from the news of its end. */
export function before(news, settings) {
  return { scores: [news.cash - news.outcome * news.ante - settings.stake] };
}

function fresh() {
  return { hand: [], dealer: [], dealt: null, ante: 0, played: null, outcome: null, says: [""], done: false };
}

/** The state after an event. */
export function step(old, event) {
  const base = isNext(old, event) ? { ...old, ...fresh(), round: old.round + 1 } : old;
  const state = common(base, event);
  switch (event.event) {
    case "dealt":
      return { ...state, dealt: event.deal };
    case "asked":
      return asked(state, event.question);
    case "answered":
      return isTold(event) ? acted(state, base.turn?.kind, event.value) : state;
    case "told":
      return event.news.kind === "round_over" ? roundOver(state, event.news) : state;
    case "over":
      return { ...state, cash: state.stake + state.scores[0] };
    default:
      return state;
  }
}

function asked(state, question) {
  if (question.kind === "ante") return { ...state, cash: question.cash ?? state.cash, round: question.round ?? state.round };
  return { ...state, hand: question.hand ?? NO_HAND, dealer: NO_HAND, ante: question.ante ?? state.ante, cash: question.cash ?? state.cash };
}

function acted(state, kind, value) {
  if (kind === "ante") return { ...state, ante: value, says: [`ante ${number(value)}`] };
  return { ...state, played: value === "play", says: [value === "play" ? "plays" : "folds"] };
}

function roundOver(state, news) {
  const played = news.outcome !== FOLDED;
  const gained = news.outcome * news.ante;
  return {
    ...state, hand: news.hand, dealer: news.dealer, ante: news.ante, outcome: news.outcome, cash: news.cash, played, done: true, turn: null,
    scores: put(state.scores, 0, news.cash - state.stake), gained, says: [played ? "plays" : "folds"],
  };
}

/** The category of three cards (T2), in words; "" if one is hidden. @param {(string|null)[]} cards */
function category(cards) {
  const seen = cards.filter((card) => card !== null);
  if (seen.length !== 3) return "";
  const [low, middle, high] = seen.map((card) => RANKS.indexOf(card[0])).sort((a, b) => a - b);
  const flush = seen.every((card) => card[1] === seen[0][1]);
  const straight = (low + 1 === middle && middle + 1 === high) || (low === 0 && middle === 1 && high === 12);
  if (straight && flush) return "straight flush";
  if (low === high) return "three of a kind";
  if (straight) return "straight";
  if (flush) return "flush";
  return low === middle || middle === high ? "pair" : "nothing";
}

/** Whether the dealer's hand is queen-high or better (T6). @param {string[]} cards */
function qualifies(cards) {
  return category(cards) !== "nothing" || cards.some((card) => "QKA".includes(card[0]));
}

/** How a round ended, in words. */
function ending({ outcome, ante, dealer }, name) {
  if (outcome === FOLDED) return `${name} loses the ante, ${number(ante)}`;
  if (!qualifies(dealer)) return `the dealer does not qualify: ${name} wins the ante, ${number(ante)}`;
  if (outcome > 0) return `${name} wins ${number(2 * ante)}`;
  return outcome < 0 ? `${name} loses ${number(2 * ante)}` : "a tie: both bets go back";
}

/** What happened, in words; null for what is no step of its own. */
export function describe(event, players, before) {
  const [name] = players;
  if (event.event === "asked" && event.question.kind === "play" && event.question.hand) {
    return `${name} is dealt ${cardList(event.question.hand)}: ${category(event.question.hand)}`;
  }
  if (event.event === "answered" && isTold(event)) {
    if (before.turn?.kind === "ante") return `${name} antes ${number(event.value)}`;
    return event.value === "play" ? `${name} plays for ${number(before.ante)} more` : `${name} folds`;
  }
  if (event.event !== "told" || event.news.kind !== "round_over") return null;
  return `the dealer has ${cardList(event.news.dealer)}: ${category(event.news.dealer)}; ${ending(event.news, name)}`;
}

function cardList(cards) {
  return list(cards.map((card) => `the ${cardName(card)}`));
}

/** The table. */
export function Table({ state, players, turn, clock }) {
  const { outcome, done, dealt } = state;
  // Cards that the table does not see yet are dimmed: only a view of all cards has them.
  const isSecret = Boolean(dealt) && !done;
  const hand = isSecret && !state.hand.length ? dealt.slice(0, 3) : state.hand;
  const dealer = isSecret ? dealt.slice(3, 6) : state.dealer;
  const name = players[0];
  const shown = done && outcome !== null;
  const isOut = shown && outcome !== FOLDED && !qualifies(dealer);
  const lost = shown && outcome < 0;
  const folded = state.played === false;
  return html`<${DealerTable} game="poker" label="Three card poker table" sign=${`Round ${number(state.round)}${state.goal ? ` · goal ${number(state.goal)}` : ""}`}
    dealer=${{ cards: dealer, counts: category(dealer), label: "the dealer's hand", look: isSecret ? "peek" : lost ? "win" : isOut ? "dim" : "", places: 3 }}
    mark=${isOut ? html`<span class="mark out">does not qualify</span>` : null}
    bets=${[{ title: "ante", amount: state.ante, dim: lost }, { title: "play", amount: state.played ? state.ante : 0, dim: lost }]}
    result=${shown ? ending(state, "the player") : ""}
    hand=${{ cards: hand, counts: category(hand), label: `${name}'s hand`, look: !state.hand.length ? "peek" : shown && outcome > 0 ? "win" : folded ? "dim" : "", places: 3 }}
    name=${name} score=${number(state.cash)} unit="cash" says=${state.says[0]} dim=${folded} turn=${state.turn?.seat === 0} clock=${turn ? clock : null}
    gain=${shown ? outcome * state.ante : null} total=${state.scores[0]} />`;
}

/** The legal moves of the person who plays. */
export function Moves({ question, state, onAnswer, disabled = false }) {
  if (!question) return null;
  if (question.kind === "ante") {
    const { min, max } = question.legal;
    const quick = [{ text: "Least", amount: min, key: "l" }, { text: "Half", amount: Math.floor(max / 2), key: "h" }, { text: "Most", amount: max, key: "m" }];
    return html`<${Amount} key=${`ante ${question.round}`} range=${question.legal} quick=${quick} verb="Ante" first=${state?.ante || Math.max(1, Math.round(max / 50))}
      stride=${max >= 200 ? 10 : 1} onAnswer=${onAnswer} disabled=${disabled} title=${`You have ${number(question.cash)}. Your ante, before you see your cards?`} />`;
  }
  return html`<${Buttons} key="play" onAnswer=${onAnswer} disabled=${disabled}
    title=${`You have ${category(question.hand) === "nothing" ? `no more than the ${cardName(highest(question.hand))}` : `a ${category(question.hand)}`}. Play or fold?`}
    moves=${[{ value: "play", text: `Play for ${number(question.ante)} more`, key: "p" }, { value: "fold", text: "Fold", key: "f" }]} />`;
}

function highest(hand) {
  return hand.reduce((best, card) => (RANKS.indexOf(card[0]) > RANKS.indexOf(best[0]) ? card : best));
}
