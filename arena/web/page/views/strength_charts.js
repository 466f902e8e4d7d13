// @ts-check
// What bots did, drawn from the charts of any game: shares as bars, or as a grid of colours. All of it is tables.

import { html, useRef, useState } from "../lib/preact.js";
import { Name, Panel } from "../components.js";
import { digitsFor, number, percent } from "../format.js";

const ROOMY = 3; // columns: there each cell has room for all that is known

/** @param {{names: string[], all: any[][]}} props  all: the charts of each bot, in one order, none while they are not there */
export function Charts({ names, all }) {
  const most = all.reduce((one, other) => (other.length > one.length ? other : one), []);
  return most.map(({ title, what, columns, note }, at) => {
    const charts = all.map((its) => its.find((chart) => chart.title === title) ?? null);
    const first = charts.find(Boolean);
    const marks = first.cells.flat().some((cell) => cell?.mark != null);
    const isGrid = columns.length > 1;
    const isRoomy = columns.length <= ROOMY;
    return html`<${Panel} key=${title} title=${title} look="habit">
      ${isGrid
        ? html`<div class=${`columns ${names.length > 1 ? "two" : ""}`}>${charts.map((chart, of) => chart && html`<${Grid} key=${names[of]} chart=${chart} name=${names[of]} alone=${names.length === 1} />`)}</div>`
        : html`<${Bars} names=${names} charts=${charts} />`}
      <p class="faint small">Shares: ${what}.${" "}
        ${marks && isRoomy && html`<span class="key"><i class="tick"></i> the best play.</span> `}
        ${marks && !isRoomy && html`<span class="key"><i class="better"></i> the best play, most of the time.</span> `}
        ${isRoomy && html`<span class="key"><i class="span"></i> 95 % interval.</span> `}
        ${marks && first.line !== null && "The thick line: where the best play changes. "}${isRoomy && charts.some((chart) => chart?.cells.flat().some((cell) => cell?.cost > 0)) && `Costs: ${first.cost_unit}. `}${note}</p>
    <//>`;
  });
}

/** A chart of one column, of all bots. */
function Bars({ names, charts }) {
  const { title, what, rows, line } = charts.find(Boolean);
  return html`<div class="wide" tabindex="0" role="region" aria-label=${title}><table class="shares">
    <caption class="unseen">${title}: ${what}</caption>
    <thead class=${names.length > 1 ? "" : "unseen"}><tr><td></td>${names.map((name) => html`<th scope="col"><${Name} name=${name} /></th>`)}</tr></thead>
    <tbody>${rows.map((row, at) => html`<tr key=${row} class=${at === line ? "changes" : null}>
      <th scope="row">${row}</th>
      ${charts.map((chart) => html`<td>${chart ? html`<${Bar} cell=${chart.cells[at][0]} />` : ""}</td>`)}
    </tr>`)}</tbody>
  </table></div>`;
}

function Bar({ cell }) {
  if (!cell) return html`<span class="faint">–</span>`;
  return html`<div class="bar-cell"><${Strip} cell=${cell} /><span><b>${shown(cell)}</b> <span class="faint">${more({ ...cell, mark: null })}</span>${cell.mark !== null && html`<span class="unseen">, best ${percent(cell.mark)}</span>`}</span></div>`;
}

/** The share with its interval and the best play's, on a scale. */
function Strip({ cell: { share, low, high, mark } }) {
  const at = (value) => 100 * value;
  return (share !== null || mark !== null) && html`<svg class="strip" viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">
      <rect class="all" x="0" y="3" width="100" height="10" />
      ${share !== null && html`<rect class="part" x="0" y="3" width=${at(share)} height="10" />`}
      ${share !== null && low !== null && high !== null && html`<line class="span" x1=${at(low)} x2=${at(high)} y1="8" y2="8" />`}
      ${mark !== null && html`<line class="tick" x1=${at(mark)} x2=${at(mark)} y1="0" y2="16" />`}
    </svg>`;
}

/** What stands in a cell. */
function shown({ share, text }) {
  return text || (share === null ? "not seen" : percent(share));
}

/** What else is known of it: "9 of 20, best 33 %, costs 0.02 chips". */
function more({ share, count, of, mark, cost }, unit = "") {
  return [
    share !== null && of > 0 && `${number(count)} of ${number(of)}`,
    mark !== null && `best ${percent(mark)}`,
    cost > 0 && `costs ${costOf(cost)} ${unit}`,
  ].filter(Boolean).join(", ");
}

function costOf(cost) {
  return number(cost, Math.min(6, digitsFor(cost) + (cost < 0.01 ? 2 : 0)));
}

/** A chart of several columns; one of its cells is told in full: the one pointed at, or gone to with the arrows. */
function Grid({ chart, name, alone }) {
  const { title, what, rows, columns, cells, line, cost_unit: unit } = chart;
  const table = useRef(/** @type {any} */ (null));
  const [told, tell] = useState(/** @type {[number, number]|null} */ (null));
  const [row, column] = told ?? [0, 0];
  const isRoomy = columns.length <= ROOMY;
  const cell = told && cells[row][column];
  const go = (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = [Math.max(0, Math.min(rows.length - 1, row + by[0])), Math.max(0, Math.min(columns.length - 1, column + by[1]))];
    table.current.querySelector(`[data-at="${next.join(" ")}"]`).focus();
  };
  return html`<figure class=${`shares-of ${isRoomy ? "roomy" : ""}`}>
    ${!alone && html`<figcaption><${Name} name=${name} /></figcaption>`}
    <div class="wide"><table class="shares grid-of" ref=${table} onKeyDown=${go} onPointerLeave=${() => tell(null)}>
      <caption class="unseen">${title} of ${name}: ${what}</caption>
      <thead><tr><td></td>${columns.map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
      <tbody>${rows.map((head, at) => html`<tr key=${head} class=${at === line ? "changes" : null}>
        <th scope="row">${head}</th>
        ${columns.map((_, to) => html`<${Cell} key=${to} cell=${cells[at][to]} unit=${unit} at=${`${at} ${to}`} isRoomy=${isRoomy} isIn=${at === row && to === column} onTell=${() => tell([at, to])} />`)}
      </tr>`)}</tbody>
    </table></div>
    ${!isRoomy && html`<p class="told small">${cell ? html`<b>${rows[row]} / ${columns[column]}: ${shown(cell)}</b> ${spanOf(cell)} ${more(cell, unit)}` : html`<span class="faint">In per cent. ${told ? "Nothing can be there." : html`Point at a cell, or go there with the arrow keys.${cells.flat().some((each) => each?.cost > 0) && html` <span class="key"><i class="cornered"></i> costs something</span>`} <span class="key"><i class="unasked"></i> not seen</span>`}</span>`}</p>`}
  </figure>`;
}

function Cell({ cell, unit, at, isRoomy, isIn, onTell }) {
  const look = !cell ? "never" : cell.share === null && !cell.text ? "unasked" : "cornered".repeat(Number(cell.cost > 0));
  const style = cell?.share != null ? { "--share": cell.share } : null;
  const given = { class: `${look} ${!isRoomy && cell?.mark > 0.5 ? "better" : ""}`, style, "data-at": at, tabindex: isIn ? 0 : -1, onFocus: onTell, onPointerEnter: onTell };
  if (!cell) return html`<td ...${given}><span class="unseen">nothing can be here</span></td>`;
  if (isRoomy) return html`<td ...${given}><b>${shown(cell)}</b> <small>${more(cell)}</small><${Strip} cell=${cell} /></td>`;
  return html`<td ...${given}><span aria-hidden="true">${cell.text || (cell.share === null ? "" : number(100 * cell.share))}</span><span class="unseen">${shown(cell)}${more(cell, unit) && `, ${more(cell, unit)}`}</span></td>`;
}

function spanOf({ share, low, high }) {
  return share !== null && low !== null && high !== null && low < high ? `[${number(100 * low)}, ${percent(high)}]` : "";
}
