// @ts-check
// The beginning of a match's page: how it ended, and the dearest mistakes of its seats as links to their moments.

import { html, useEffect, useState } from "../lib/preact.js";
import { GAMES } from "../games/games.js";
import { href } from "../route.js";
import { number } from "../format.js";
import { costText, dearestOf } from "../table/marks.js";
import { outcomeText } from "../table/outcome.js";
import { Dot } from "../table/seats.js";
import { useMistakes } from "./mistakes.js";

/**
 * @param {{id: string, document: any, seats: number[], chosen: number|null, marks: import("../table/marks.js").Mark[], unit: string, onMark: (mark: any, seat: number) => void}} props
 *   seats: whose mistakes may be seen; chosen: the seat whose `marks` have been asked for
 */
export function Outcome({ id, document, seats, chosen, marks, unit, onMark }) {
  const { players, game } = document;
  const isQuick = GAMES[game]?.judges === "quick"; // others are asked for when they are wanted
  const most = seats.length > 2 ? 1 : 2;
  const others = isQuick ? seats.filter((seat) => seat !== chosen) : [];
  const [answered, setAnswered] = useState(0); // of the others: one is asked for after the other
  const shown = (seat, found) => found.length > 0 && html`<p class="dearest"><${Dot} seat=${seat} /> <bdi>${players[seat]}</bdi> gave most away:
    ${dearestOf(found, most).map((mark) => html`${" "}<a href=${href("m", id, mark.round)} onClick=${(event) => (event.preventDefault(), onMark(mark, seat))}>${unit} ${number(mark.round)}: ${mark.answer_text}; better: ${mark.best_text} (${costText(mark)})</a>`)}</p>`;
  return html`<div class="outcome">
    <p><b>${outcomeText(document)}</b></p>
    ${chosen !== null && shown(chosen, marks)}
    ${others.slice(0, answered + 1).map((seat, at) => html`<${Asked} key=${seat} id=${id} seat=${seat} shown=${shown} onAnswer=${() => setAnswered((before) => Math.max(before, at + 1))} />`)}
  </div>`;
}

function Asked({ id, seat, shown, onAnswer }) {
  const { data, marks } = useMistakes(id, seat);
  const isAnswered = Boolean(data) && !["queued", "running"].includes(data.state);
  useEffect(() => void (isAnswered && onAnswer()), [isAnswered]);
  return shown(seat, marks);
}
