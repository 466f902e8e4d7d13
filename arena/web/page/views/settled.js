// A competition that goes on until it is settled: between which ranks a bot is, and the mark of each pairing.

import { html } from "../lib/preact.js";
import { Mean } from "../components.js";
import { number, percent } from "../format.js";

export function isSettled(rows) {
  return rows.some((row) => "rank_low" in row);
}

/** The columns before the others; none in any other competition. @param {any[]} rows */
export function settledColumns(rows) {
  if (!isSettled(rows)) return [];
  const ranked = rows.filter((row) => row.rank !== null).length;
  const ranges = {
    id: "ranks", title: "Ranks", hint: "the ranks that it may have; all of them together are right in 95 of 100 competitions", look: "ranks-cell",
    value: (row) => (row.rank_low === null ? null : row.rank_low + row.rank_high),
    cell: (row) => row.rank_low !== null && html`<${RankBar} row=${row} most=${ranked} />`,
  };
  if (!rows.some((row) => "share" in row)) return [ranges];
  const share = {
    id: "share", title: "Share won", hint: "what ranks: the share of matches won, a draw half, as the mean over its opponents", number: true,
    value: (row) => row.share, cell: (row) => row.share !== null && html`<${Mean} mean=${row.share} interval=${row.share_low === null ? null : [row.share_low, row.share_high]} say=${(value, digits) => percent(value, Math.max(0, digits - 2))} digits=${3} />`,
  };
  return [ranges, share];
}

/** A bar from the best to the worst rank that is possible; it gets narrower with every block. */
function RankBar({ row: { rank, rank_low: low, rank_high: high }, most }) {
  const text = low === high ? `${number(low)}` : `${number(low)}–${number(high)}`;
  const at = (place) => (100 * place) / Math.max(1, most);
  return html`<span class="rankbar">
    <span class="figure">${text}</span>
    <svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${`rank ${text} of ${most}`}>
      <rect class="all" x="0" y="4" width="100" height="2" />
      <rect class="possible" x=${at(low - 1)} y="1" width=${at(high - low + 1)} height="8" />
      <line class="found" x1=${at(rank - 0.5)} x2=${at(rank - 0.5)} y1="0" y2="10" />
    </svg>
  </span>`;
}

const GOALS = { pairs: "every two are told apart", first: "it is clear who is first", order: "the whole order is clear" };
const MARKS = { ">": "surely better", "<": "surely worse", "=": "level", "?": "open" };

/** What the table says for sure. @param {{settle?: any}} competition */
export function settledNote({ settle, form }) {
  const ranges = "All rank ranges together are right in 95 of 100 competitions.";
  if (!settle) return ranges;
  const level = form === "league" ? "" : ` A difference of less than ${number(settle.level)} in 100 does not count.`;
  return `Played on until ${GOALS[settle.goal]}, at most ${number(settle.most)} times each.${level} ${ranges}`;
}

export const MARKS_NOTE = "Each mark is wrong at most once in 20: > surely better, < surely worse, = level, ? open. Marks change when a block of matches is complete.";

export function markText(mark) {
  return MARKS[mark] ?? "";
}
