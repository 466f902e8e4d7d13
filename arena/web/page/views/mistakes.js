// @ts-check
// The mistakes of a seat in a recorded match: whose are shown, what they cost together, the dearest; and the record as a file.

import { html, useMemo, useState } from "../lib/preact.js";
import { api, fetchText } from "../api.js";
import { Panel, saveFile } from "../components.js";
import { count, digitsFor, number } from "../format.js";
import { GRADES, SIGNS, costText, dearestOf, gradesOf } from "../table/marks.js";
import { Dot } from "../table/seats.js";
import { Analysed, useAnalysis } from "./analysis.js";
import { Sign } from "./match_parts.js";

const DEAREST = 5;
/** @type {import("../table/marks.js").Mark[]} */
const NONE = [];

/** The seats whose mistakes this viewer may see, and which of them is the viewer's own. @param {any} document @param {any} me */
export function seatsOf({ view, players }, me) {
  const seats = view.kind === "all" ? players.map((_, seat) => seat) : view.kind === "seat" ? view.seats : [];
  const own = me?.kind === "owner" ? seats.find((seat) => players[seat] === me.name) : undefined;
  return { seats, own: own ?? null };
}

/** @param {string} id @param {number|null} seat  null asks for nothing */
export function useMistakes(id, seat) {
  const read = useAnalysis(seat === null ? null : api("matches", id, "mistakes"), { seat: (seat ?? 0) + 1 });
  return { ...read, marks: /** @type {typeof NONE} */ (read.data?.mistakes?.marks ?? NONE) };
}

/** @param {{document: any, me: any, seat: number|null, read: any, onSeat: (seat: number|null) => void, onMark: (mark: any) => void, unit: string}} props */
export function Mistakes({ document: match, me, seat, read, onSeat, onMark, unit }) {
  const { seats } = seatsOf(match, me);
  const { players } = match;
  const choice = html`<div class="row" role="group" aria-label="Whose mistakes">
    ${seats.map((each) => html`<button type="button" class="whose" aria-pressed=${String(each === seat)} onClick=${() => onSeat(each === seat ? null : each)}>
      <${Dot} seat=${each} /><bdi>${players[each]}</bdi></button>`)}</div>`;
  return html`<${Panel} title="Mistakes" look="mistakes" side=${seats.length > 0 && choice}>
    ${seats.length === 0 && html`<p class="faint">What single decisions cost is for the owners of these bots and the instructor until the competition is over.</p>`}
    ${seats.length > 0 && seat === null && html`<p class="faint">Choose whose: the arena then works out what each of that seat's decisions cost, from what it knew.</p>`}
    ${seat !== null && html`<${Analysed} read=${read} what=${`the decisions of ${players[seat]}`} units="decisions">
      ${({ mistakes }) => html`<${Found} mistakes=${mistakes} onMark=${onMark} unit=${unit} />`}<//>`}
  <//>`;
}

function Found({ mistakes: { marks, totals, judged, decisions }, onMark, unit: round }) {
  const dearest = useMemo(() => dearestOf(marks, DEAREST), [marks]);
  if (!judged) return html`<p>None of its ${count(decisions, "decision")} can be judged.</p>`;
  const of = judged === decisions ? count(decisions, "decision") : `${count(judged, "decision")} that can be judged, of ${number(decisions)}`;
  const cost = totals.map(({ unit, total }) => `${number(total, digitsFor(total))} ${unit}`).join(" and ");
  if (!marks.length) return html`<p>No mistake in ${of}${cost ? `; they gave away ${cost} together` : ""}.</p>`;
  return html`
    <p><b>${cost}</b> given away in ${of}.${" "}
      ${gradesOf(marks).map(([grade, many]) => html`<span class="pair"><i class=${`speck grade-${grade}`}></i><${Sign} grade=${grade} /> ${count(many, GRADES[grade], grade === 1 ? "inaccuracies" : undefined)}</span> `)}</p>
    <p class="row dearest"><span>The dearest:</span> ${dearest.map((mark) => html`<button type="button" class="plain" title=${`${SIGNS[mark.grade]} ${mark.answer_text}`} onClick=${() => onMark(mark)}>${round} ${number(mark.round)} (${costText(mark)})</button>`)}</p>`;
}

/** The record as a file: the whole one, or what the viewer's own seats saw of it while more may not be seen. @param {{id: string, document: any}} props */
export function SaveRecord({ id, document: { view } }) {
  const [status, setStatus] = useState("");
  if (view.kind === "public") return null;
  const save = async (seat) => {
    try {
      const text = await fetchText(api("matches", id, "record"), seat === null ? null : { seat: seat + 1 });
      saveFile(seat === null ? `${id}.json` : `${id}-seat-${seat + 1}.json`, new Blob([text], { type: "application/json" }));
      setStatus("saved");
    } catch (error) {
      setStatus(error.message);
    }
  };
  const button = (text, seat) => html`<button type="button" title="for: arena replay FILE --bot v2.py" onClick=${() => save(seat)}>${text}</button>`;
  return html`<span class="copy">${view.kind === "all" ? button("Save the record", null) : view.seats.map((seat) => button(view.seats.length > 1 ? `Save what seat ${seat + 1} saw` : "Save what my seat saw", seat))}
    <span role="status">${status}</span></span>`;
}
