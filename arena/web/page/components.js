// Components of several views: names, links, states, error bars, and texts where there is nothing to show.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./lib/preact.js";
import { setToken } from "./api.js";
import { href } from "./route.js";
import { formTitle, title as gameTitle, number, signed, digitsFor, digitsOf, spaced, versioned } from "./format.js";

export { Table } from "./grid.js";
export { Chart, Histogram } from "./chart.js";

function useTitle(text) {
  useEffect(() => {
    document.title = text ? `${text} · arena` : "arena";
  }, [text]);
}

/** Load the style sheet of a view. @param {URL} url */
export function addStyles(url) {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = url.href;
  document.head.append(sheet);
}

/** The frame of a view: where it stands, its heading, what can be done there. */
export function Page({ title, label, crumbs = [], side, lead, children }) {
  useTitle(label ?? (typeof title === "string" ? title : ""));
  return html`<div class="page">
    <header class="head">
      ${crumbs.length > 0 &&
      html`<nav class="crumbs" aria-label="Where this is">
        ${crumbs.map((crumb) => html`<a href=${crumb.href}>${crumb.title}</a>`)}
      </nav>`}
      <div class="heading">
        <h1 tabindex="-1">${title}</h1>
        ${side}
      </div>
      ${lead && html`<p class="lead">${lead}</p>`}
    </header>
    ${children}
  </div>`;
}

export function Panel({ title, side, look = "", children }) {
  return html`<section class=${`panel ${look}`}>
    <div class="heading"><h2>${title}</h2>${side}</div>
    ${children}
  </section>`;
}

/** A bot's name: one line however long, in its own direction of writing. */
export function Name({ name, look = "" }) {
  return html`<bdi class=${`name ${look}`} title=${name}>${name}</bdi>`;
}

export function BotLink({ competition, name, version = "", look = "" }) {
  const shown = versioned(name, version);
  if (!competition) return html`<${Name} name=${shown} look=${look} />`;
  return html`<a class=${`name ${look}`} href=${href("c", competition, "bot", name)} title=${shown}><bdi>${shown}</bdi></a>`;
}

export function MatchLink({ match, round, step, children }) {
  return html`<a href=${href("m", match, round, round ? step : undefined)}>${children ?? match}</a>`;
}

/** The players of a match with their scores, in one line or under each other. */
export function Versus({ players, scores }) {
  return html`<span class=${players.length > 2 ? "versus many" : "versus"}>
    ${players.map(
      (name, seat) => html`<span class="side">
        <${Name} name=${name} />
        ${scores && html`<span class="score">${signed(scores[seat])}</span>`}
      </span>`,
    )}
  </span>`;
}

/** A word of state in its colour: running, paused, finished, here, away … */
export function State({ state, children }) {
  return html`<span class=${`state ${state}`}>${children ?? state}</span>`;
}

/** What a competition is called: its run's name, and beside it the game and form if the name does not say them. */
export function competitionTitle({ run, game, form }) {
  const about = [gameTitle(game), formTitle(form)];
  return run && run !== game && spaced(run) !== gameTitle(game) ? { title: run, about } : { title: gameTitle(game), about: [formTitle(form)] };
}

export function Waits({ names, most = 4 }) {
  return html`<span class="small waits">waits for ${names.slice(0, most).map((name, index) => html`${index > 0 && ", "}<${Name} name=${name} look="short" />`)}${names.length > most && ` and ${number(names.length - most)} more`}</span>`;
}

/** Whom a competition waits for; of one that was over also that it waits however long that takes. */
export function WaitsFor({ competition }) {
  const { waits_for: names = [], reopened } = competition ?? {};
  return html`${names.length > 0 && html`<${Waits} names=${names} />`}
    ${reopened && html`<span class="small faint">It was over, and matches are played again: nobody is absent, and the instructor ends it.</span>`}`;
}

export function crumbsOf(id, competition) {
  const title = competition ? competitionTitle(competition).title : "Competition";
  return [{ href: href("competitions"), title: "Competitions" }, { href: href("c", id), title }];
}

/** Links between views that belong together. @param {{items: {href: string, title: string, is: boolean}[], label: string}} props */
export function Tabs({ items, label }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${items.map((item) => html`<a href=${item.href} aria-current=${item.is ? "page" : null}>${item.title}</a>`)}
  </nav>`;
}

/** Where there is nothing to show: what that means and what to do. */
export function Empty({ title, text, children }) {
  return html`<div class="empty">
    <p class="what">${title}</p>
    ${text && html`<p>${text}</p>`}
    ${children}
  </div>`;
}

/** What went wrong, in the arena's own line, and a way on; a token that is good no more can be forgotten. */
export function Failure({ error, retry }) {
  return html`<div class="failure" role="alert">
    <p class="what">${error.message}</p>
    ${error.status === 401 && html`<button type="button" onClick=${() => setToken("")}>Go on without the token</button>`}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** A window above the page that has the keyboard until it is closed, with Escape too. `children` gets what closes it. */
export function Dialog({ title, onEnd, children }) {
  const dialog = useRef(null);
  const hasEnded = useRef(false);
  // Before the next frame: a key pressed until then belongs to the dialog.
  useLayoutEffect(() => {
    dialog.current.showModal();
  }, []);
  // The browser's own `close` event comes later than the focus goes back: by then the same question may have been asked anew.
  const end = (event) => {
    event?.preventDefault?.();
    if (hasEnded.current) return;
    hasEnded.current = true;
    dialog.current?.close();
    onEnd();
  };
  return html`<dialog ref=${dialog} onCancel=${end} onClose=${end} aria-labelledby="dialog-title">
    <div class="stack">
      <h2 id="dialog-title">${title}</h2>
      ${children(end)}
    </div>
  </dialog>`;
}

export function Loading({ what = "" }) {
  return html`<p class="loading" role="status">Loading${what && ` ${what}`}…</p>`;
}

/** A document's content, or why there is none; old content stays while requests fail. */
export function Loaded({ document, what, children }) {
  const { data, error, loading, reload } = document;
  if (data) return html`${error && html`<${Failure} error=${error} retry=${reload} />`}${children(data)}`;
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  return loading ? html`<${Loading} what=${what} />` : null;
}

/** Save a file where the browser saves them. @param {string} name @param {Blob} blob */
export function saveFile(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A few figures in a row. @param {{items: [string, any, string?][]}} props  term, figure, hint */
export function Figures({ items }) {
  return html`<dl class="figures">
    ${items.filter(Boolean).map(([term, figure, hint]) => html`<div title=${hint}><dt>${term}</dt><dd>${figure}</dd></div>`)}
  </dl>`;
}

/**
 * The first few of many, and the button that shows the rest.
 * @returns {[any[], any]} what is to be shown, and the button or nothing
 */
export function useFew(items, few, what) {
  const [all, setAll] = useState(false);
  if (all || items.length <= few) return [items, null];
  return [items.slice(0, few), html`<p><button type="button" class="plain" onClick=${() => setAll(true)}>Show all ${number(items.length)} ${what}</button></p>`];
}

export function Progress({ done, all, label }) {
  return html`<progress value=${done} max=${Math.max(1, all)} aria-label=${label}>${number(done)} of ${number(all)}</progress>`;
}

/** A mean with its interval in words: "+3.1 [+2.7, +3.5]"; "too few" where nothing can be said. */
export function Mean({ mean, interval, say, digits = 0 }) {
  if (mean == null) return "–";
  if (!interval) return html`${say(mean, digits)} <span class="faint" title="too few to say how far chance may have moved it">(too few)</span>`;
  const shown = digitsOf(interval, digits);
  return html`${say(mean, shown)} <span class="faint" title="95 % interval">[${say(interval[0], shown)}, ${say(interval[1], shown)}]</span>`;
}

/**
 * A mean and how sure it is: the bar is its interval, a thick part in it the inner one; on one scale for a whole column.
 * @param {{mean: number | null, interval: [number, number] | null, inner?: [number, number], scale: [number, number]}} props
 */
export function ErrorBar({ mean, interval, inner, scale: [low, high] }) {
  if (mean == null) return null;
  const at = (value) => 2 + (96 * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1);
  const digits = digitsOf(interval, digitsFor(Math.max(Math.abs(low), Math.abs(high))));
  const say = (value) => number(value, digits);
  const text = interval ? `${say(mean)}, between ${say(interval[0])} and ${say(interval[1])}` : `${say(mean)}, too few to say how sure`;
  const bar = (ends, look) => ends && html`<line class=${look} x1=${at(ends[0])} x2=${at(ends[1])} y1="8" y2="8" />`;
  return html`<svg class="errorbar" viewBox="0 0 100 16" preserveAspectRatio="none" role="img" aria-label=${text}>
    <title>${text}</title>
    ${low < 0 && high > 0 && html`<line class="zero" x1=${at(0)} x2=${at(0)} y1="0" y2="16" />`}
    ${bar(interval, inner ? "thin" : "thick")}${bar(inner, "thick")}
    <line class="mean" x1=${at(mean)} x2=${at(mean)} y1="2" y2="14" />
  </svg>`;
}

/** A scale on which all of the bars have room. @param {[number | null, [number, number] | null][]} pairs  mean and interval */
export function scaleOf(pairs) {
  let low = Infinity;
  let high = -Infinity;
  for (const [mean, interval] of pairs) {
    if (mean == null) continue;
    low = Math.min(low, interval ? interval[0] : mean);
    high = Math.max(high, interval ? interval[1] : mean);
  }
  return low <= high ? [low, high === low ? low + 1 : high] : [0, 1];
}
