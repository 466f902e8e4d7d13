// @ts-check
// The table of a game against the dealer.

import { html } from "../lib/preact.js";
import { signed } from "../format.js";
import { Chips, Hand } from "./cards.js";
import { Felt, Result, Seat, Sign } from "./seats.js";

/**
 * @typedef {{cards: (string|null)[], counts: string, label: string, look: string, places: number, peeks?: string|null}} Cards
 *   counts: what they come to, in words; places: where cards will lie, while there are none; peeks: the card of them that lies face down
 */

/**
 * The felt with the dealer at its top, the bets in the middle and the player below.
 * @param {{game: string, label: string, sign: any, dealer: Cards, mark: any, bets: {title: string, amount: number, dim: boolean}[], result: string,
 *   name: string, hand: Cards, total: number} & Record<string, any>} props  mark: beside the dealer; total: since the start; the rest is for the player's Seat
 */
export function DealerTable({ game, label, sign, dealer, mark, bets, result, name, hand, total, ...seat }) {
  return html`<${Felt} game=${`against-dealer ${game}`} label=${label}>
    <section class="seat top dealer" aria-label="dealer">
      <div class="place"><span class="aside">${dealer.counts}</span><div class="plate"><bdi class="who">Dealer</bdi>${mark}</div><span class="saying"></span></div>
      <${Cards} ...${dealer} />
    </section>
    <div class="middle">
      <${Sign}>${sign}<//>
      <div class="bets">${bets.map((bet) => html`<${Spot} ...${bet} />`)}</div>
      <${Result} title=${result} />
    </div>
    <${Seat} name=${name} seat=${0} place="bottom" aside=${hand.counts} ...${seat}><${Cards} ...${hand} /><//>
    <p class="total-line">since the start <b>${signed(total)}</b></p>
  <//>`;
}

function Cards({ cards, label, look, places, peeks }) {
  if (!cards.length) return html`<div class="hand">${Array.from({ length: places }, () => html`<div class="no-card"></div>`)}</div>`;
  return html`<${Hand} groups=${[{ cards, state: look }]} label=${label} states=${peeks ? { [peeks]: "peek" } : {}} />`;
}

/** A place for a bet on the felt. */
function Spot({ title, amount, dim }) {
  return html`<div class=${`spot ${dim ? "dim" : ""}`}><span class="caption">${title}</span><div class="circle"><${Chips} amount=${amount} /></div></div>`;
}
