// How far a submission is, step by step; an upload; and words that all views of submissions use.

import { html, useEffect, useRef } from "../lib/preact.js";
import { href } from "../route.js";
import { Panel, Progress, State } from "../components.js";
import { capital, duration, number } from "../format.js";
import { isDecided } from "./submit_link.js";

const MARKS = { begun: "…", ok: "✓", FAILED: "✗", skipped: "–", incomplete: "–" };
const LOOKS = { accepted: "here", refused: "offence", waiting: "waits", building: "playing", checking: "playing" };
const MIB = 1 << 20;

/** 4096 → "4 KiB". */
export function bytes(size) {
  if (size < 1024) return `${size} bytes`;
  return size < MIB ? `${number(size / 1024)} KiB` : `${number(size / MIB, size % MIB ? 1 : 0)} MiB`;
}

/** Why programs are not safe here, to everybody whom that concerns. */
export function Unsafe({ text }) {
  return text ? html`<p class="failure unsafe" role="alert"><span><b>Programs are not isolated from each other here.</b> ${text}</span></p>` : null;
}

/** `v3`, or what else has become of it. */
export function Became({ entry }) {
  const { version, state, is_disabled } = entry;
  return html`${version && html`<b>v${version}</b> `}<${State} state=${is_disabled ? "offence" : LOOKS[state]}>${is_disabled ? "disabled" : state}<//>`;
}

/** When it is its turn: "2nd in the queue, about 3 min". */
export function turnOf({ state, position, expected_s }) {
  const words = [];
  if (isDecided({ state })) return "";
  if (position) words.push(position === 1 ? "next in the queue" : `number ${number(position)} in the queue`);
  if (expected_s != null) words.push(`decided in about ${duration(Math.ceil(expected_s))}`);
  return words.join(", ");
}

/** What is being sent just now, or why it was not taken. */
export function Upload({ upload }) {
  const { name, size, got, position, busy, error, giveUp } = upload;
  const box = useRef(null);
  useEffect(() => box.current?.scrollIntoView(), [busy]);
  if (!busy && !error) return null;
  return html`<section class="panel" ref=${box} aria-label="What is being handed in">
    <h2>${name}</h2>
    ${busy && html`<${Progress} done=${got} all=${size} label=${`bytes of ${name} that have arrived`} />`}
    <div role="status">
      ${busy && html`<p>${position ? `Other uploads are on; yours is number ${number(position)}.` : got < size ? "Being sent…" : "It has arrived, and is looked at…"}</p>`}
      ${error && html`<p class="heard bad">${error.message}</p>`}
    </div>
    ${busy && html`<p><button type="button" onClick=${giveUp}>Give up</button></p>`}
  </section>`;
}

/** @param {{run: import("./submit_link.js").Run, entry: any, isNew?: boolean}} props  isNew: just handed in on this page */
export function Run({ run, entry, isNew }) {
  const { submission, state, steps, text, version } = run;
  const box = useRef(null);
  useEffect(() => isNew && box.current?.scrollIntoView(), [isNew]);
  const now = steps.findLast((one) => one.status === "begun");
  const words = {
    waiting: `It waits${turnOf(run) && `: ${turnOf(run)}`}.`,
    building: "It is being built.",
    checking: `It is being checked${now ? `: ${now.step}` : ""}.`,
    accepted: `Accepted as v${version}.`,
    refused: "Not accepted:",
  };
  return html`<div ref=${box}><${Panel} title=${entry ? `${entry.name}${entry.message && `: ${entry.message}`}` : `Submission ${submission}`} side=${html`<${State} state=${LOOKS[state]}>${state}<//>`}>
    <div role="status">
      <p class=${isDecided(run) ? `heard ${state === "accepted" ? "good" : "bad"}` : ""}>${words[state] ?? capital(state)} ${text && html`<span class="said">${text}</span>`}</p>
    </div>
    ${!isDecided(run) && run.expected_s != null && state !== "waiting" && html`<p class="faint small">Decided in about ${duration(Math.ceil(run.expected_s))}.</p>`}
    ${steps.length > 0 && html`<${Steps} steps=${steps} />`}
    ${isDecided(run) && html`<p><a href=${href("submit", submission)}>Its log</a></p>`}
  <//></div>`;
}

function Steps({ steps }) {
  return html`<ol class="steps-of" tabindex="0" aria-label="Build and check">
    ${steps.map(({ step, status, text }) => html`<li class=${status === "FAILED" ? "failed" : status}>
      <span class="sign" aria-hidden="true">${MARKS[status] ?? ""}</span>
      <b>${step}</b> <span class=${status === "ok" ? "unseen" : ""}>${status === "begun" ? "now" : status}</span>
      ${text && html`<span class="said">${text}</span>`}
    </li>`)}
  </ol>`;
}
