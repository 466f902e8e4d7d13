// @ts-check
// Playing cards as inline SVG, drawn here: no font has to have the suits, and no picture is fetched.
// A card is "As" … "2c", or "A", "K", "Q" without a suit; null is a card that may not be seen.

import { html } from "../lib/preact.js";
import { cardName } from "../format.js";

/** The outline of each suit in a box of 24 × 24; told apart by shape as well as by colour. */
const SUITS = {
  s: "M12 1.5C13.5 6 21.8 9.8 21.8 15c0 2.8-2 4.5-4.4 4.5-1.8 0-3.4-1-4.3-2.6.2 2.5 1.3 4.4 3.2 5.6H7.7c1.9-1.2 3-3.1 3.2-5.6-.9 1.6-2.5 2.6-4.3 2.6-2.4 0-4.4-1.7-4.4-4.500C2.2 9.8 10.5 6 12 1.500Z",
  h: "M12 21.800C5 16 1.8 12.1 1.8 8 1.8 4.8 4.1 2.6 7 2.600c2.2 0 4 1.2 5 3.3 1-2.1 2.8-3.3 5-3.3 2.9 0 5.2 2.2 5.2 5.4 0 4.1-3.2 8-10.2 13.800Z",
  d: "M12 1.200C14.2 5.4 17.1 8.9 20.8 12 17.1 15.1 14.2 18.6 12 22.8 9.8 18.6 6.9 15.1 3.2 12 6.9 8.9 9.8 5.4 12 1.200Z",
  c: "M12 1.500a4.9 4.9 0 0 1 4 7.7 4.9 4.9 0 1 1-2.9 7.900c.2 2.4 1.3 4.2 3.2 5.400H7.700c1.9-1.2 3-3 3.2-5.400a4.9 4.9 0 1 1-2.9-7.900A4.9 4.9 0 0 1 12 1.500Z",
};

/** Where the pips of each number lie: column (0 left, 1 middle, 2 right) and height from 0 to 1. */
const L = 0;
const M = 1;
const R = 2;
const PIPS = {
  2: [[M, 0], [M, 1]],
  3: [[M, 0], [M, 0.5], [M, 1]],
  4: [[L, 0], [R, 0], [L, 1], [R, 1]],
  5: [[L, 0], [R, 0], [M, 0.5], [L, 1], [R, 1]],
  6: [[L, 0], [R, 0], [L, 0.5], [R, 0.5], [L, 1], [R, 1]],
  7: [[L, 0], [R, 0], [M, 0.25], [L, 0.5], [R, 0.5], [L, 1], [R, 1]],
  8: [[L, 0], [R, 0], [M, 0.25], [L, 0.5], [R, 0.5], [M, 0.75], [L, 1], [R, 1]],
  9: [[L, 0], [R, 0], [L, 0.333], [R, 0.333], [M, 0.5], [L, 0.667], [R, 0.667], [L, 1], [R, 1]],
  T: [[L, 0], [R, 0], [M, 0.167], [L, 0.333], [R, 0.333], [L, 0.667], [R, 0.667], [M, 0.833], [L, 1], [R, 1]],
};

/** What the court cards wear, in a box of 40 × 28: a king's crown has points, a queen's has pearls, a jack a lily. */
const CROWNS = {
  K: "M3 26 1 5l10 8L20 0l9 13 10-8-2 21Z",
  Q: "M4 26 2 9a3.5 3.5 0 1 1 3-1l8 8 4-10a4 4 0 1 1 6 0l4 10 8-8a3.5 3.5 0 1 1 3 1l-2 17Z",
  J: "M20 0c5 6 7 10 4 15 4-3 9-3 12 1-1 4-5 6-9 4v8H13v-8c-4 2-8 0-9-4 3-4 8-4 12-1-3-5-1-9 4-15Z",
  A: "M20 0 25 11 38 14 25 17 20 28 15 17 2 14 15 11Z",
};

/**
 * One card. `hidden` or a card of null shows its back.
 * @param {{card?: string|null, hidden?: boolean, label?: string, state?: string}} props
 *   state: words for its look: "melded", "drawn", "selected", "dim", "win", "known", "layoff"
 */
export function Card({ card = null, hidden = false, label, state = "" }) {
  const back = hidden || card == null;
  const name = label ?? (back ? "a hidden card" : cardName(card));
  const look = `card ${back ? "back" : colour(card[1])} ${state}`;
  return html`<svg class=${look} viewBox="0 0 100 140" role="img" aria-label=${name} data-card=${back ? null : card}>
    <rect class="paper" x="1.5" y="1.5" width="97" height="137" rx="9" />
    ${back ? Back() : card.length === 1 ? Single(card) : Face(card)}
  </svg>`;
}

function colour(suit) {
  return suit === "h" || suit === "d" ? "red" : suit ? "black" : "plain";
}

/** The lattice of a back, line by line: a pattern would need an id of its own in every card. */
const LATTICE = Array.from({ length: 14 }, (_, at) => `M8 ${14 * at - 98} 92 ${14 * at}M8 ${238 - 14 * at} 92 ${140 - 14 * at}`).join("");

function Back() {
  return html`<svg x="8" y="8" width="84" height="124" viewBox="8 8 84 124">
      <rect class="back-ground" x="8" y="8" width="84" height="124" rx="5" />
      <path class="back-lines" d=${LATTICE} />
    </svg>
    <rect class="back-edge" x="8" y="8" width="84" height="124" rx="5" />
    <path class="back-mark" d="M50 48 66 70 50 92 34 70Z" />`;
}

function rankText(rank) {
  return rank === "T" ? "10" : rank;
}

function Face(card) {
  const [rank, suit] = card;
  return html`<text class=${`rank ${rank === "T" ? "ten" : ""}`} x="20" y="37" text-anchor="middle">${rankText(rank)}</text>
    ${Shape(suit, 20, 56, 25)} ${Middle(rank, suit)}`;
}

function Middle(rank, suit) {
  if (rank === "A") {
    return Shape(suit, 60, 76, 58);
  }
  if (rank in PIPS) {
    return PIPS[rank].map(([column, height]) =>
      Shape(suit, 45 + column * 19, 22 + height * 96, 20, height > 0.5));
  }
  return html`<rect class="frame" x="38" y="14" width="52" height="112" rx="4" />
    <svg class="crown" x="43" y="22" width="42" height="30" viewBox="0 0 40 28"><path d=${CROWNS[rank]} /></svg>
    <text class="court" x="64" y="92" text-anchor="middle">${rank}</text>
    ${Shape(suit, 64, 111, 21)}`;
}

function Single(rank) {
  const crown = html`<path class="crown" d=${CROWNS[rank]} transform="translate(29 12) scale(1.05)" />`;
  return html`${crown}<g transform="rotate(180 50 70)">${crown}</g><text class="single" x="50" y="88" text-anchor="middle">${rank}</text>`;
}

function Shape(suit, x, y, size, turned = false) {
  const scale = size / 24;
  const turn = turned ? " rotate(180)" : "";
  return html`<path class="pip" d=${SUITS[suit]} transform=${`translate(${x} ${y}) scale(${scale})${turn} translate(-12 -12)`} />`;
}

/**
 * Cards side by side, overlapping; groups stand a little apart.
 * @param {{groups: {cards: (string|null)[], state?: string}[], label: string, states?: Record<string, string>}} props
 */
export function Hand({ groups, label, states = {} }) {
  const filled = groups.filter((group) => group.cards.length);
  return html`<div class="hand" role="group" aria-label=${label}>
    ${filled.map((group) => html`<span class=${`group ${group.state ?? ""}`}>
      ${group.cards.map((card) => html`<${Card} card=${card}
        state=${`${group.state ?? ""} ${card === null ? "" : states[card] ?? ""}`} />`)}
    </span>`)}
  </div>`;
}

/**
 * A pile with its number of cards; only the top is seen.
 * @param {{card?: string|null, count: number, title: string, empty?: string, state?: string}} props
 */
export function Pile({ card = null, count, title, empty = "empty", state = "" }) {
  const deep = count > 20 ? "deep" : count > 1 ? "some" : "";
  return html`<figure class="pile">
    ${count > 0
      ? html`<div class=${`heap ${deep}`}><${Card} card=${card} state=${state} label=${card === null ? `${title}, face down` : undefined} /></div>`
      : html`<div class="no-card"><span>${empty}</span></div>`}
    <figcaption>${title} <b>${count}</b></figcaption>
  </figure>`;
}

const CHIP_VALUES = [1000, 500, 100, 25, 5, 1];

/**
 * Chips to an amount: at most a few discs, and always the number.
 * @param {{amount: number, label?: string}} props
 */
export function Chips({ amount, label = "" }) {
  if (!amount) {
    return null;
  }
  const discs = [];
  let left = Math.abs(amount);
  for (const value of CHIP_VALUES) {
    while (left >= value && discs.length < 6) {
      discs.push(value);
      left -= value;
    }
  }
  const height = 22 + discs.length * 5;
  return html`<span class="chip-stack">
    <svg viewBox=${`0 0 44 ${height}`} width="44" height=${height} aria-hidden="true">
      ${discs.map((value, at) => html`<g class=${`chip v${value}`} transform=${`translate(0 ${height - 22 - at * 5})`}>
        <path class="side" d="M2 9v5c0 5 9 8 20 8s20-3 20-8V9Z" /><ellipse cx="22" cy="9" rx="20" ry="8" />
        <ellipse class="inner" cx="22" cy="9" rx="11" ry="4" />
      </g>`)}
    </svg>
    <span class="amount"><b>${amount.toLocaleString("en-GB")}</b>${label ? html` <span>${label}</span>` : null}</span>
  </span>`;
}
