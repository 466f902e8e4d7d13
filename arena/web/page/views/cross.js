// Every bot against every bot as a heat map: a grid of links, one tab stop, arrows move in it.
// Up to 60 × 60 cells: they are drawn once, and a focus or a hover changes one line of text only.

import { h, html, useMemo, useRef, useState } from "../lib/preact.js";
import { api, useDocument } from "../api.js";
import { href } from "../route.js";
import { BotLink, Empty, Loaded, Mean, Name, Panel } from "../components.js";
import { MARKS_NOTE, markText } from "./settled.js";
import { count, digitsFor, intervalNote, number, signed } from "../format.js";

const STEPS = 5; // of colour, to each side of nothing
const WIDE = 16; // more bots than these leave no room for figures in the cells
const LEVEL = 1e-9; // a lead below this is none

/** @param {{competition: any, everyMs?: number}} props */
export function Cross({ competition, everyMs }) {
  const read = useDocument(api("competitions", competition.id, "cross"), null, everyMs);
  return html`<${Loaded} document=${read} what="the cross table">
    ${(cross) =>
      cross.names.length
        ? html`<${Heat} competition=${competition.id} cross=${cross} />`
        : html`<${Empty} title="Nobody is in the cross table." text="Bots that are eliminated are not in it; the verdicts say why they are." />`}
  <//>`;
}

function Heat({ competition, cross }) {
  const [on, setOn] = useState(null);
  const cells = useMemo(() => cellsOf(cross), [cross]);
  const marks = useMemo(() => marksOf(cross), [cross]);
  const most = useMemo(() => Math.max(LEVEL, ...cross.cells.map((cell) => Math.abs(leadOf(cells, cell)))), [cells]);
  const wide = cross.names.length <= WIDE;
  const digits = digitsFor(Math.max(LEVEL, ...cross.cells.map((cell) => Math.abs(cell[7] ?? 0))));
  const at = useRef([0, 1]);
  at.current = at.current.map((place) => Math.min(place, cross.names.length - 1)); // bots may be out meanwhile
  const table = useRef(null);
  const drawn = useMemo(() => rowsOf({ competition, cross, cells, marks, most, wide, digits, at: at.current }), [cross, competition]);
  const find = (event) => event.target.closest?.("a[data-at]");
  const pointed = (event) => {
    const link = find(event);
    if (link) setOn(link.dataset.at);
  };
  const focused = (event) => {
    const link = find(event);
    if (!link) return;
    table.current.querySelector('a[data-at][tabindex="0"]')?.setAttribute("tabindex", "-1");
    link.setAttribute("tabindex", "0");
    at.current = link.dataset.at.split(" ").map(Number);
    setOn(link.dataset.at);
  };
  const pressed = (event) => {
    const link = find(event);
    const next = link && moved(event.key, link.dataset.at.split(" ").map(Number), cross.names.length);
    if (!next) return;
    event.preventDefault();
    table.current.querySelector(`a[data-at="${next.join(" ")}"]`)?.focus();
  };
  return html`<${Panel} title="Every bot against every bot">
    <p class="detail" aria-live="polite">${on ? html`<${Detail} cross=${cross} cell=${cells.get(on)} mark=${marks.get(on)} at=${on.split(" ").map(Number)} digits=${digits} />` : "Each cell is how the bot of its row did against that of its column. Point at one, or go there with Tab and the arrows; Enter opens the pairing."}</p>
    <div class="wide tall" onMouseOver=${pointed} onfocusin=${focused} onKeyDown=${pressed} ref=${table}>
      <table class=${wide ? "heat figures-in" : "heat"} role="grid" aria-label="Cross table" aria-readonly="true">${drawn}</table>
    </div>
    ${cross.marks && html`<p class="small faint">${MARKS_NOTE}</p>`}
    <${Legend} most=${most} digits=${digits} />
    <p class="faint small">${intervalNote(cross.unit)}</p>
  <//>`;
}

/** "row column" → its cell, as the arena numbers them. */
function cellsOf(cross) {
  return new Map(cross.cells.map((cell) => [`${cell[0]} ${cell[1]}`, cell]));
}

/** "row column" → the mark of the pairing; empty where a run does not settle. */
function marksOf(cross) {
  return new Map((cross.marks ?? []).map((mark, place) => [`${cross.cells[place][0]} ${cross.cells[place][1]}`, mark]));
}

/** How far a bot is ahead of its opponent, per match. Its own score alone does not tell: where games are counted, the one who loses scores 0, as both do in a draw. */
function leadOf(cells, [row, column, , , , , , mean]) {
  return (mean ?? 0) - (cells.get(`${column} ${row}`)?.[7] ?? 0);
}

function rowsOf({ competition, cross, cells, marks, most, wide, digits, at }) {
  const names = cross.names;
  const links = names.map((name) => href("c", competition, "pairing", name));
  const ends = names.map(encodeURIComponent);
  return [
    html`<thead><tr role="row">
      <td role="gridcell"><span class="unseen">row against column</span></td>
      ${names.map((name) => html`<th scope="col" role="columnheader" title=${name}><${Name} name=${name} /></th>`)}
    </tr></thead>`,
    html`<tbody>${names.map(
      (name, row) => html`<tr role="row" key=${name}>
        <th scope="row" role="rowheader"><${BotLink} competition=${competition} name=${name} /></th>
        ${names.map((other, column) => {
          const place = `${row} ${column}`;
          const cell = cells.get(place);
          const lead = cell?.[2] ? leadOf(cells, cell) : null;
          const mark = lead === null || row === column ? "" : marks.get(place) ?? "";
          const text = lead === null ? "" : `${mark} ${signed(cell[7] ?? 0, digits)}`.trim();
          // By hand, not by a template: there are up to 3,600.
          const link = {
            "data-at": place, href: `${links[row]}/${ends[column]}`, tabindex: row === at[0] && column === at[1] ? 0 : -1,
            "aria-label": `${name} against ${other}: ${lead === null ? "not played yet" : `${text} per match${mark && `, ${markText(mark)}`}`}`,
          };
          return h("td", { role: "gridcell", class: lead === null ? "none" : shade(lead, most) }, h("a", link, wide ? text : mark || sign(lead)));
        })}
      </tr>`,
    )}</tbody>`,
  ];
}

function sign(lead) {
  return lead > LEVEL ? "+" : lead < -LEVEL ? "−" : "";
}

function shade(lead, most) {
  if (Math.abs(lead) <= LEVEL) return "level";
  const step = Math.min(STEPS, Math.max(1, Math.ceil(STEPS * Math.sqrt(Math.abs(lead) / most))));
  return (lead > 0 ? "w" : "l") + step;
}

/** Where a key leads from a cell; null if it is none of ours. */
function moved(key, [row, column], size) {
  const end = size - 1;
  const to = {
    ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    Home: [row, 0], End: [row, end], PageUp: [0, column], PageDown: [end, column],
  }[key];
  return to && to.every((place) => place >= 0 && place <= end) ? to : to ? [row, column] : null;
}

function Detail({ cross, cell, mark, at: [row, column], digits }) {
  const [a, b] = [cross.names[row], cross.names[column]];
  const against = html`<b><${Name} name=${a} /></b> against <b><${Name} name=${b} /></b>: `;
  if (!cell || !cell[2]) return html`${against}not played yet`;
  const [, , played, wins, draws, losses, score, mean, , low, high] = cell;
  return html`${against}<${Mean} mean=${mean} interval=${low == null ? null : [low, high]} say=${signed} digits=${digits} /> per match;
    ${" "}${number(wins)} won, ${number(draws)} drawn, ${number(losses)} lost of ${count(played, "match", "matches")}; ${signed(score)} in all${mark && row !== column ? `; ${markText(mark)}` : ""}`;
}

function Legend({ most, digits }) {
  const shades = [...Array(STEPS).keys()];
  return html`<p class="legend small faint">
    <span>behind its opponent</span>
    ${shades.map((step) => html`<i class=${`l${STEPS - step}`}></i>`)}<i class="level"></i>${shades.map((step) => html`<i class=${`w${step + 1}`}></i>`)}
    <span>ahead of it, by up to ${number(most, digits)} per match</span>
  </p>`;
}
