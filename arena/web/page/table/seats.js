// @ts-check
// What every table has: the felt, and round it a plate for each seat with its name, its score, its turn and what it says.

import { html } from "../lib/preact.js";
import { signed } from "../format.js";

/** The felt; `game` is a class for the layout. */
export function Felt({ game, label, children }) {
  return html`<div class="felt-room"><div class=${`felt ${game}`} role="group" aria-label=${label}>${children}</div></div>`;
}

/**
 * A seat: its plate, what it says, and what lies before it.
 * @param {{name: string, seat: number, score?: number|string|null, unit?: string, turn?: boolean, clock?: any, dim?: boolean,
 *   says?: string, marks?: string[], gain?: number|null, place?: string, role?: string, aside?: any, children?: any}} props
 *   clock: what is left, drawn by the caller; marks: words on badges; gain: what the round has brought; aside: stands beside the plate
 */
export function Seat({ name, seat, score, unit = "", turn = false, clock, dim = false, says = "", marks = [], gain = null, place = "", role = "", aside = "", children }) {
  return html`<section class=${`seat ${place} ${turn ? "on-turn" : ""} ${dim ? "dim" : ""}`} aria-label=${turn ? `${name}, to decide` : name}>
    <div class="place">
      <span class="aside">${aside}</span>
      <div class="plate">
        <${Dot} seat=${seat} />
        <bdi class="who" title=${name}>${name.split(/(?<=:)/).map((part, at) => html`${at > 0 && html`<wbr />`}${part}`)}</bdi>
        ${score == null ? null : html`<span class="score">${score}${unit ? html` <small>${unit}</small>` : null}</span>`}
        ${gain === null ? null : html`<${Gain} amount=${gain} />`}
        ${role ? html`<span class="role">${role}</span>` : null}
        ${marks.map((mark) => html`<span class=${`mark ${mark.replaceAll(" ", "-")}`}>${mark}</span>`)}
        ${turn ? html`<span class="clock">${clock ?? "to decide"}</span>` : null}
      </div>
      <span class="saying">${says ? html`<span class="bubble">${says}</span>` : null}</span>
    </div>
    ${children}
  </section>`;
}

/** A seat's colour, as its line in the overview has it. */
export function Dot({ seat }) {
  return html`<span class=${`seat-dot line-${seat + 1}`} aria-hidden="true"></span>`;
}

/** What a round has brought: green or red, and with its sign. */
function Gain({ amount }) {
  return html`<span class=${`gain ${amount > 0 ? "up" : amount < 0 ? "down" : "even"}`}>${amount === 0 ? "±0" : signed(amount)}</span>`;
}

/** The line in the middle that says how a round or the match ended. */
export function Result({ title, text }) {
  return title || text ? html`<p class="result"><b>${title}</b>${text ? html` <span>${text}</span>` : null}</p>` : html`<p class="result none" aria-hidden="true"> </p>`;
}

/** A small heading in the middle of the table: which hand it is. */
export function Sign({ children }) {
  return html`<p class="sign">${children}</p>`;
}
