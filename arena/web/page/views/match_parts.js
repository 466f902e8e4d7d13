// @ts-check
// What live and recorded matches share: the heading, the table with its events, the link to a moment.

import { html, useEffect, useErrorBoundary, useRef, useState } from "../lib/preact.js";
import { BotLink, Loading, Page, State } from "../components.js";
import { href } from "../route.js";
import { capital, list, milliseconds, number, termination, title } from "../format.js";
import { SPEEDS } from "../table/controls.js";
import { GRADES, SIGNS, bestText } from "../table/marks.js";
import { unitOf } from "../table/games.js";
import { Dot } from "../table/seats.js";

export const LAST = 1e9;
const SAY_MS = 2000; // between two lines that are read aloud: a match is faster than anybody listens
const COPIED_MS = 4000;

export function Frame({ scene, state, side, children }) {
  const { players, competition, game } = scene;
  const crumbs = competition ? [{ href: href("c", competition), title: "Competition" }] : [{ href: href(), title: "Lobby" }];
  const names = html`<span class="versus-names">${players.map((name, seat) => html`${seat ? html`<span class="v">v</span>` : null}
    <span class="side"><${Dot} seat=${seat} /><${BotLink} competition=${competition} name=${name} version=${scene.versions?.[seat]} /></span>`)}</span>`;
  const badge = state === "live" ? html`<${State} state="live">live<//>` : state === "offence" ? html`<${State} state="offence">ended early<//>` : html`<${State} state="over">over<//>`;
  return html`<div class="watching"><${Page} title=${title(game)} label=${`${list(players)} · ${title(game)}`} crumbs=${crumbs}
      side=${html`<span class="row">${names}${badge}${eyes(scene.view, players)}${side}</span>`}>${children}<//></div>`;
}

/** Whose view of the match is shown, unless it is the public one. */
function eyes({ kind, seats }, players) {
  if (players.length === 1) return null;
  if (kind === "seat") return html`<span class="faint">you see the cards of ${list(seats.map((seat) => players[seat]))}</span>`;
  return kind === "all" ? html`<span class="faint">all cards shown</span>` : html`<span class="faint">as a spectator sees it</span>`;
}

/** The table, what happened at it, and what its players noted; marks: the mistakes among the steps; onFail: the table cannot be drawn. */
export function Stage({ game, scene, steps, step, round, onPick, onFail, turn = null, clock = null, marks }) {
  const listed = useRef(null);
  useEffect(() => {
    const box = listed.current;
    const line = box?.querySelector("[aria-current]");
    // scrollIntoView would scroll the page as well.
    if (box && line) box.scrollTop = Math.max(0, line.offsetTop - box.clientHeight / 2);
  }, [round, step, steps]);
  const beginning = `${capital(unitOf(scene.game))} ${number(round)}`;
  const shown = steps?.[step];
  const mark = marks?.get(step);
  const state = shown?.state;
  return html`${game.broken && html`<p class="note" role="note">${game.broken}</p>`}<div class="board">
    <div class="felt-place">${state ? html`<${Guarded} key=${Boolean(game.broken)} onFail=${onFail}><${game.Table} state=${state} players=${scene.players} view=${scene.view} turn=${turn ?? state.turn} clock=${clock} /><//>` : html`<div class="felt-room waiting"><${Loading} what=${beginning.toLowerCase()} /></div>`}
      ${state?.over && state.over.termination.kind !== "completed" ? html`<p class="cut-short">${cutShort(state.over.termination, scene.players)}</p>` : null}
    </div>
    <section class="steps" aria-label="What happened">
      <h2>${beginning}</h2>
      <${Aloud} text=${(shown?.text || beginning) + (mark ? `: ${GRADES[mark.grade]}, ${bestText(mark)}` : "")} />
      <ol ref=${listed}>${(steps ?? []).map((each, at) => html`<li key=${at}>
        <button type="button" aria-current=${at === step ? "step" : null} onClick=${() => onPick(at)}>
          <span class="text">${each.text || "the beginning"}${marks?.has(at) && html` <${Sign} grade=${marks.get(at).grade} />`}</span>${each.took == null ? null : html`<span class="took">${milliseconds(each.took)}</span>`}
          ${marks?.has(at) && html`<span class="best">${bestText(marks.get(at))}</span>`}
          ${each.note ? html`<q class="note">${each.note}</q>` : null}
        </button></li>`)}</ol>
    </section>
  </div>`;
}

/** A table of a game's own view, which may fail to be drawn. */
function Guarded({ onFail, children }) {
  const [error] = useErrorBoundary(onFail);
  return error ? null : children;
}

/** How bad a mistake is, as a sign. @param {{grade: number}} props */
export function Sign({ grade }) {
  return html`<b class=${`sign grade-${grade}`} title=${GRADES[grade]}><span aria-hidden="true">${SIGNS[grade]}</span><span class="unseen">${GRADES[grade]}</span></b>`;
}

/** Events for screen readers, but not every line of a fast match. */
function Aloud({ text }) {
  const [spoken, speak] = useState(text);
  const spokenAt = useRef(-SAY_MS);
  useEffect(() => {
    const timer = setTimeout(() => {
      spokenAt.current = performance.now();
      speak(text);
    }, spokenAt.current + SAY_MS - performance.now());
    return () => clearTimeout(timer);
  }, [text]);
  return html`<p class="unseen" aria-live="polite">${spoken}</p>`;
}

function cutShort({ kind, seat }, players) {
  const who = seat == null ? "The match" : players[seat];
  return html`<bdi>${who}</bdi>: ${termination(kind)}`;
}

/** The link to this moment, for somebody else. */
export function CopyLink({ link }) {
  const [status, setStatus] = useState("");
  const copy = async () => {
    const address = location.href.replace(/#.*$/, "") + link;
    setStatus((await copied(address)) ? "copied" : address);
    setTimeout(() => setStatus(""), COPIED_MS);
  };
  return html`<span class="copy"><button type="button" onClick=${copy}>Copy link to this moment</button><span role="status">${status}</span></span>`;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have `clipboard` only with TLS; the old way works in most of them.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** The value, or the bound that it is beyond. */
export function within(value, most, least = 1) {
  return Math.max(least, Math.min(most, value));
}

/** A speed so many notches on. */
export function faster(speed, by) {
  return SPEEDS[within(SPEEDS.indexOf(speed) + by, SPEEDS.length - 1, 0)];
}
