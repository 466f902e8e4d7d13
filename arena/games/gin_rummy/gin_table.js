// @ts-check
// How gin rummy is drawn: the table, and the controls of a person who plays it.

import { html, useState } from "../../lib/preact.js";
import { capital, cardName, count, number } from "../../format.js";
import { Card, Hand, Pile } from "../../table/cards.js";
import { arrange, sum, withLayoffs } from "./gin_melds.js";
import { Buttons, Key, useKeys } from "../../table/moves.js";
import { Felt, Result, Seat, Sign } from "../../table/seats.js";

const ENDS = {
  gin: "gin",
  knock: "the knock wins",
  undercut: "undercut",
  tie: "equal deadwood",
  stock: "the stock is used up: nobody scores",
  turns: "too many turns: nobody scores",
};

/** How a round ended, in words. */
export function ending({ reason, points }, players) {
  const winner = points[0] > points[1] ? 0 : 1;
  const end = ENDS[reason] ?? reason;
  return points[0] === points[1] ? end : `${end}: ${count(points[winner], "point")} for ${players[winner]}`;
}

/** The table; while `me` chooses a card in `Moves`, that hand is there and not here. */
export function Table({ state, players, turn, clock, me }) {
  const bottom = me ?? 0;
  const { ended, gameOver } = state;
  const seat = (at, place) => html`<${Seat} key=${at} seat=${at} name=${players[at]} place=${place} score=${number(state.points[at])} unit="points"
      turn=${state.turn?.seat === at} clock=${turn?.seat === at ? clock : null} says=${state.says[at]}
      gain=${ended ? ended.points[at] : null} marks=${marks(state, at)} role=${state.games > 1 ? count(state.scores[at], "game") : ""}
      aside=${deadwood(state, at)}>
      ${at === me && turn?.seat === me && state.turn?.kind === "turn" ? null : html`<${Fan} state=${state} seat=${at} name=${players[at]} />`}
    <//>`;
  return html`<${Felt} game="gin" label="Gin rummy table">
    ${seat(1 - bottom, "top")}
    <div class="middle">
      <${Sign}>${state.games > 1 && state.game ? `Game ${number(state.game)} · ` : ""}Round ${number(state.round)} <small>to ${number(state.target)}</small><//>
      <div class="piles">
        <${Pile} title="stock" count=${state.stock} />
        <${Pile} title="discards" count=${state.pile.length} card=${state.pile[state.pile.length - 1] ?? null} />
      </div>
      <${Result} title=${gameOver ? (gameOver.winner === null ? "The game is drawn" : `${players[gameOver.winner]} wins the game`) : ended ? capital(ending(ended, players)) : ""}
        text=${gameOver && ended ? ending(ended, players) : ""} />
    </div>
    ${seat(bottom, "bottom")}
  <//>`;
}

function marks({ ended, knocker, starter, done }, seat) {
  if (ended?.gin && knocker === seat) return ["gin"];
  if (ended?.reason === "undercut" && knocker === 1 - seat) return ["undercut"];
  if (knocker === seat) return ["knocks"];
  return !done && starter === seat ? ["first"] : [];
}

/** The hand, sorted: melds together, the rest, and what is not known. */
function Fan({ state, seat, name }) {
  const { groups } = laidOut(state, seat);
  const drawn = state.drawn?.seat === seat && state.drawn.card ? { [state.drawn.card]: "drawn" } : {};
  const layoffs = Object.fromEntries((state.ended?.layoffs ?? []).map(([card]) => [card, "layoff"]));
  return html`<${Hand} groups=${groups} states=${{ ...drawn, ...layoffs }} label=${`${name}'s hand`} />`;
}

function deadwood(state, seat) {
  const { left } = laidOut(state, seat);
  return left === null ? "" : html`deadwood <b>${left}</b>`;
}

function laidOut(state, seat) {
  return state.ended ? laid(state.ended, seat) : sortedHand(state.hands[seat]);
}

/** @param {(string|null)[]} hand */
function sortedHand(hand) {
  const known = hand.filter((card) => card !== null);
  const hidden = hand.filter((card) => card === null);
  if (hidden.length) return { groups: [{ cards: [...known, ...hidden], state: "partly" }], left: null };
  const { melds, rest, deadwood } = arrange(known);
  return { groups: [...melds.map((cards) => ({ cards, state: "melded" })), { cards: rest }], left: hand.length === 10 ? deadwood : null };
}

/** What lies on the table at the end: the knocker's melds with what was laid off on them. */
function laid(ended, seat) {
  const { melds, hands, layoffs, knocker } = ended;
  const mine = seat === knocker;
  const gone = mine ? [] : layoffs.map(([card]) => card);
  const shown = melds[seat].map((meld, at) => (mine ? withLayoffs(meld, layoffs.filter(([, on]) => on === at).map(([card]) => card)) : withLayoffs(meld, [])));
  const melded = new Set([...melds[seat].flat(), ...gone]);
  const rest = hands[seat].filter((card) => !melded.has(card));
  return { groups: [...shown.map((cards) => ({ cards, state: "melded" })), { cards: withLayoffs(rest, []) }], left: sum(rest) };
}

/** The legal moves of the person who plays. */
export function Moves({ question, onAnswer, disabled = false }) {
  if (question?.kind === "turn") return html`<${Discard} key=${question.hand.join("")} question=${question} onAnswer=${onAnswer} disabled=${disabled} />`;
  if (!question) return null;
  if (question.kind === "offer") {
    return html`<${Buttons} key="offer" onAnswer=${onAnswer} disabled=${disabled} title=${`The ${cardName(question.upcard)} is on offer.`}
      moves=${[{ value: "take", text: "Take it", key: "t" }, { value: "pass", text: "Pass", key: "p" }]} />`;
  }
  if (question.kind === "draw") {
    return html`<${Buttons} key="draw" onAnswer=${onAnswer} disabled=${disabled} title="Draw a card."
      moves=${[{ value: "stock", text: "From the stock", key: "s" }, { value: "discard", text: `The ${cardName(question.discard)}`, key: "d" }]} />`;
  }
  return html`<${Buttons} key="melds" onAnswer=${onAnswer} disabled=${disabled} title="The other seat has knocked. The referee picks your best melds."
    moves=${[{ value: null, text: "Show my melds", key: "m" }]} />`;
}

const KNOCK_LIMIT = 10; // G9
const CARD_KEYS = "1234567890e"; // one for each of eleven cards; e is for the eleventh

/** Which of eleven cards goes, and whether to knock with it. */
function Discard({ question, onAnswer, disabled }) {
  const { melds, rest } = arrange(question.hand);
  const order = [...melds.flat(), ...rest];
  const [chosen, choose] = useState(null);
  const knocks = new Set(question.legal.filter((answer) => answer.knock).map((answer) => answer.discard));
  const left = (card) => arrange(question.hand.filter((other) => other !== card)).deadwood;
  const say = (knock) => chosen !== null && !disabled && (!knock || knocks.has(chosen)) && onAnswer({ discard: chosen, knock, melds: null });
  const move = (by) => choose(order[(order.indexOf(chosen ?? order[by > 0 ? order.length - 1 : 0]) + by + order.length) % order.length]);
  const keys = { ArrowLeft: () => move(-1), ArrowRight: () => move(1), d: () => say(false), Enter: () => say(false), k: () => say(true) };
  order.forEach((card, at) => (keys[CARD_KEYS[at]] = () => choose(card)));
  useKeys(disabled ? {} : keys);
  let at = 0;
  const button = (card, look) => {
    const key = CARD_KEYS[at++];
    return html`<button type="button" class="pick" aria-pressed=${chosen === card} disabled=${disabled} aria-keyshortcuts=${key} key=${card}
      aria-label=${`${cardName(card)}${question.drawn === card ? ", just drawn" : ""}${knocks.has(card) ? ", you may knock with it" : ""}`}
      onClick=${() => choose(chosen === card ? null : card)}>
      <${Card} card=${card} label="" state=${`${look} ${question.drawn === card ? "drawn" : ""} ${chosen === card ? "selected" : ""}`} /><${Key}>${key.toUpperCase()}<//></button>`;
  };
  const knockText = chosen === null ? "Knock" : left(chosen) === 0 ? "Knock: gin!" : `Knock with ${left(chosen)}`;
  return html`<div class="moves" role="group" aria-label="Your moves">
    <p class="question">${question.drawn ? `You have the ${cardName(question.drawn)} now.` : ""} Choose a card to discard${knocks.size ? ", and knock if you like" : ""}.</p>
    <div class="own"><div class="hand picks">${[...melds.map((cards) => ({ cards, state: "melded" })), { cards: rest, state: "" }].map((group) =>
      html`<span class=${`group ${group.state}`}>${group.cards.map((card) => button(card, group.state))}</span>`)}</div>
      <p class="deadwood">${chosen === null ? " " : html`leaves you <b>${left(chosen)}</b> deadwood${knocks.has(chosen) ? "" : `: to knock it must be ${KNOCK_LIMIT} or less`}`}</p></div>
    <div class="answers">
      <button type="button" class="move main" disabled=${disabled || chosen === null} aria-keyshortcuts="D" onClick=${() => say(false)}>
        <span>${chosen === null ? "Discard" : `Discard the ${cardName(chosen)}`}</span><${Key}>D<//></button>
      <button type="button" class="move" disabled=${disabled || !knocks.has(chosen)} aria-keyshortcuts="K" onClick=${() => say(true)}>
        <span>${knockText}</span><${Key}>K<//></button>
    </div>
  </div>`;
}
