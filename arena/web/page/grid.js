// A table of figures that sorts: buttons in its head, `aria-sort`, a scroller of its own.

import { html, useMemo, useState } from "./lib/preact.js";

/**
 * @typedef {object} Column
 * @property {string} id
 * @property {any} title  what stands in the head
 * @property {string} [hint]  a longer title
 * @property {(row: any) => any} [value]  what is sorted by; without it the column does not sort. null comes last.
 * @property {(row: any) => any} [cell]  what is shown; by default the value
 * @property {boolean} [number]  figures: to the right, largest first
 * @property {boolean} [head]  names the row (th)
 * @property {string} [look]  a class for its cells
 */

/**
 * @param {object} props
 * @param {string} props.caption  for those who hear the page; shown to all with `captioned`
 * @param {boolean} [props.captioned]
 * @param {Column[]} props.columns
 * @param {any[]} props.rows
 * @param {(row: any) => string} props.keyOf
 * @param {[string, boolean]} [props.sort]  column and whether downwards, at first; else the order of `rows`
 * @param {(row: any) => string} [props.look]  a class for a row
 * @param {(row: any) => boolean} [props.last]  rows that stay at the end however it is sorted
 */
export function Table({ caption, captioned, columns, rows, keyOf, sort, look, last }) {
  const [[by, down], setSort] = useState(sort ?? [null, false]);
  const sorted = useMemo(() => sortedRows(rows, columns.find((column) => column.id === by), down, last), [rows, columns, by, down]);
  const press = (column) => setSort([column.id, by === column.id ? !down : Boolean(column.number)]);
  // Rows are made once: sorting only moves them.
  const made = useMemo(
    () =>
      new Map(rows.map((row) => [row,
        html`<tr key=${keyOf(row)} class=${look?.(row)}>
          ${columns.map((column) => {
            const shown = column.cell ? column.cell(row) : column.value?.(row);
            const cls = lookOf(column);
            return column.head
              ? html`<th scope="row" class=${cls}>${shown}</th>`
              : html`<td class=${cls}>${shown}</td>`;
          })}
        </tr>`,
      ])),
    [rows, columns],
  );
  return html`<div class="wide" tabindex="0" role="region" aria-label=${caption}>
    <table class="grid">
      <caption class=${captioned ? "" : "unseen"}>${caption}</caption>
      <thead>
        <tr>
          ${columns.map((column) => {
            const is = by === column.id;
            const cls = lookOf(column);
            return html`<th scope="col" class=${cls} title=${column.hint}
              aria-sort=${is ? (down ? "descending" : "ascending") : null}>
              ${column.value && column.title
                ? html`<button type="button" class="sort" onClick=${() => press(column)}>
                    ${column.title}<span class="arrow" aria-hidden="true">${is ? (down ? "▼" : "▲") : ""}</span>
                  </button><span class="on-paper">${column.title}${is ? (down ? " ▼" : " ▲") : ""}</span>`
                : column.title}
            </th>`;
          })}
        </tr>
      </thead>
      <tbody>${sorted.map((row) => made.get(row))}</tbody>
    </table>
  </div>`;
}

/** @param {Column} column */
function lookOf({ number, look }) {
  return [number && "number", look].filter(Boolean).join(" ") || null;
}

const WORDS = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function sortedRows(rows, column, down, last) {
  const order = rows.slice();
  if (column?.value) {
    const side = down ? -1 : 1;
    order.sort((one, other) => {
      const a = column.value(one) ?? null;
      const b = column.value(other) ?? null;
      if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
      return side * (typeof a === "number" && typeof b === "number" ? a - b : WORDS.compare(String(a), String(b)));
    });
  }
  return last ? [...order.filter((row) => !last(row)), ...order.filter(last)] : order;
}
