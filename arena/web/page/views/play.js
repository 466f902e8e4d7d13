// Sit down: choose a game and whom to play, then play it, as an ordinary client of the protocol.
// The chair outlives the view: whoever looks at the standings in between finds the table as it was left.

import { html, useEffect, useReducer, useState } from "../lib/preact.js";
import { Loading, Page } from "../components.js";
import { href } from "../route.js";
import { title } from "../format.js";
import { Chair } from "./play_chair.js";
import { Form } from "./play_form.js";
import { AtTable } from "./play_table.js";

const sheet = document.createElement("link");
sheet.rel = "stylesheet";
sheet.href = new URL("play.css", import.meta.url).href;
document.head.append(sheet);

/** @type {Chair | null} */
let chair = null; // at the table that is shown
const held = new Set(); // and at others where this tab plays on
const lookers = new Set();
const changed = () => lookers.forEach((look) => look());

/** Sit on this one from now on. @param {Chair | null} other */
function take(other) {
  chair = other;
  if (chair) held.add(chair);
  for (const one of held) if (one !== chair && one.isDone) held.delete(one);
  changed();
}

/** The chair at a match of this browser, which is taken over if another tab has it; null if there is none. @param {string} match */
function chairAt(match) {
  return [...held].find((one) => one.table && one.record === match && one.phase !== "elsewhere") ?? Chair.kept(changed, match);
}

/**
 * The table, or the way to one. With a match it is that one, which another tab of this browser may have had until now.
 * @param {{route: import("../route.js").Route, match?: string, onGone?: () => void}} props  onGone: told that the match is not ours any more
 */
export default function Play({ route, match, onGone }) {
  const [, look] = useReducer((n) => n + 1, 0);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    lookers.add(look);
    if (match) take(chairAt(match));
    else if (!chair) take(Chair.kept(changed));
    setReady(true);
    return () => lookers.delete(look);
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
  asking: "Asking for a chair…",
  waiting: "Your chair is ready; the others are coming to the table…",
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
