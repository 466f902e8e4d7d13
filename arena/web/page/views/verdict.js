// A verdict and its evidence (J4): which rule, what was asked, what was legal, what came back, the times, the limits.

import { html } from "../lib/preact.js";
import { BotLink, Empty, MatchLink, Panel, State } from "../components.js";
import { milliseconds, seatName, spaced, termination, time } from "../format.js";

const TIMES = [
  ["taken_ms", "Taken", "what the decision took as it is charged, before the credit"],
  ["waited_ms", "Waited", "how long the question had been waiting by the clock on the wall"],
  ["credit_ms", "Credit", "what was taken off for the link and for the arena's own delays"],
  ["bank_ms", "Left in the bank", "of the seat, after it"],
  ["min_rtt_ms", "Least round trip", "that the kernel has seen; it decides nothing"],
];

/**
 * One verdict. While its competition goes on only the owner and the instructor get the evidence.
 * @param {{verdict: any, competition?: string | null, bare?: boolean}} props  bare: without the bot and the match
 */
export function Verdict({ verdict, competition = null, bare = false }) {
  const hasText = Boolean(verdict.text);
  return html`<article class="verdict">
    <div class="heading">
      <h3><${State} state="offence">${verdict.kind}<//> ${hasText ? verdict.text : termination(verdict.kind)}${verdict.forgiven && html` <span class="faint">(forgiven: it lost the match and plays on)</span>`}</h3>
    </div>
    ${!bare &&
    html`<p class="row small">
      <${BotLink} competition=${competition} name=${verdict.bot} />
      ${verdict.seat != null && html`<span class="faint">${seatName(verdict.seat)}</span>`}
      ${verdict.match && html`<${MatchLink} match=${verdict.match} round="end">step through the match<//>`}
      ${verdict.at && html`<span class="faint">${time(verdict.at)}</span>`}
    </p>`}
    ${verdict.advice && html`<p><b>What its author can do:</b> ${verdict.advice}</p>`}
    ${hasText
      ? html`<${Evidence} verdict=${verdict} />`
      : html`<p class="faint small">The evidence is for its owner and the instructor until the competition is over.</p>`}
  </article>`;
}

function Evidence({ verdict }) {
  const times = TIMES.filter(([field]) => verdict[field] != null);
  return html`<dl class="evidence">
      ${entry("Found by", verdict.mechanism)}
      ${verdict.asked && entry("Asked", html`<pre tabindex="0" aria-label="what was asked">${pretty(verdict.asked)}</pre>`)}
      ${verdict.legal && entry("Legal", html`<code>${verdict.legal}</code>`)}
      ${verdict.got != null && entry("Came instead", html`<pre tabindex="0" aria-label="what came instead">${verdict.got}</pre>`)}
      ${times.length > 0 && entry("Times", html`<span class="times">${times.map(([field, term, hint]) => html`<span title=${hint}>${term} <b>${milliseconds(verdict[field])}</b></span>`)}</span>`)}
      ${verdict.exit_status != null && entry("Exit status", status(verdict.exit_status))}
      ${verdict.stderr && entry("End of stderr", html`<pre tabindex="0" aria-label="end of stderr">${verdict.stderr}</pre>`)}
      ${verdict.enforced && entry("Held to", verdict.enforced)}
    </dl>
    ${verdict.limits &&
    html`<details>
      <summary>The limits in force</summary>
      <dl class="evidence">${Object.entries(verdict.limits).map(([name, value]) => entry(spaced(name), String(value)))}</dl>
    </details>`}`;
}

function entry(term, value) {
  return value == null || value === "" ? null : html`<div><dt>${term}</dt><dd>${value}</dd></div>`;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1).replace(/\n\s*(?=[^\n]*$)|\n\s+/g, " ");
  } catch {
    return text;
  }
}

function status(value) {
  return value < 0 ? `killed by signal ${-value}` : String(value);
}

/** All verdicts of a competition. @param {{competition: any}} props  its document */
export function Verdicts({ competition }) {
  const { verdicts } = competition;
  if (!verdicts.length) {
    return html`<${Empty} title="Nobody has committed an offence."
      text="A bot that answers illegally, is out of time, crashes or leaves is listed here, with the evidence." />`;
  }
  return html`<${Panel} title=${verdicts.length === 1 ? "One verdict" : `${verdicts.length} verdicts`}>
    ${verdicts.map((verdict) => html`<${Verdict} key=${verdict.bot + verdict.match} verdict=${verdict} competition=${competition.id} />`)}
  <//>`;
}
