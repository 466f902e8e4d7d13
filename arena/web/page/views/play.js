// Play: choose a game and opponents, then play as any client of the protocol does.
// The seat outlives the view: a person may look at the standings and come back to the table.

import { html, useEffect, useReducer, useState } from "../lib/preact.js";
import { Loading, Page, addStyles } from "../components.js";
import { href } from "../route.js";
import { title } from "../format.js";
import { Chair } from "./play_chair.js";
import { Form } from "./play_form.js";
import { AtTable } from "./play_table.js";

addStyles(new URL("play.css", import.meta.url));

/** @type {Chair | null} */
let chair = null; // of the table that is shown
const chairs = new Set(); // those of all tables where this tab plays
const listeners = new Set();
const changed = () => listeners.forEach((draw) => draw());

/** Show this table from now on. @param {Chair | null} other */
function take(other) {
  chair = other;
  if (chair) chairs.add(chair);
  for (const one of chairs) if (one !== chair && one.isDone) chairs.delete(one);
  changed();
}

/** This browser's seat in a match, taken over if another tab has it; null if there is none. @param {string} match */
function chairAt(match) {
  return [...chairs].find((one) => one.table && one.record === match && one.phase !== "elsewhere") ?? Chair.resume(changed, match);
}

/**
 * The table, or the form that leads to one. With a match it is that one, even if another tab has it.
 * @param {{route: import("../route.js").Route, match?: string, onGone?: () => void}} props  onGone: called when the match is not ours any more
 */
export default function Play({ route, match, onGone }) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    listeners.add(draw);
    if (match) take(chairAt(match));
    else if (!chair) take(Chair.resume(changed));
    setReady(true);
    return () => listeners.delete(draw);
  }, []);
  const isGone = isReady && match && !chair?.table && (!chair || chair.isDone);
  useEffect(() => {
    if (isGone) onGone?.();
  });

  const sit = (request) => take(new Chair(request, changed).sit());
  const leave = () => {
    chair?.leave();
    take(null);
    if (match) location.hash = href("play");
  };
  const again = () => {
    const { request } = /** @type {Chair} */ (chair);
    chair?.leave();
    sit(request);
    if (match) location.hash = href("play");
  };
  const here = () => {
    const own = chairAt(/** @type {Chair} */ (chair).record);
    if (own) take(own);
    else chair?.ended();
  };

  if (!isReady || isGone) return html`<${Page} title="Your table"><${Loading} what="the table" /><//>`;
  if (chair?.table) return html`<${AtTable} chair=${chair} onLeave=${leave} onAgain=${again} onHere=${here} />`;
  if (chair && chair.phase !== "failed") return html`<${Waiting} chair=${chair} onLeave=${leave} />`;
  return html`<${Form} game=${route.game} refused=${chair?.text} onSit=${sit} />`;
}

const WAITS = {
  asking: "Asking for a seat…",
  waiting: "Your seat is ready; the others are coming to the table…",
  lost: "The connection is lost; trying again…",
};

function Waiting({ chair, onLeave }) {
  return html`<${Page} title=${title(chair.request.game)}>
    <div class="empty">
      <p class="what" role="status">${WAITS[chair.phase] ?? "The cards are being shuffled…"}</p>
      <p><button type="button" onClick=${onLeave}>Stand up</button></p>
    </div>
  <//>`;
}
