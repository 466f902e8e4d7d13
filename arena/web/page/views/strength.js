// @ts-check
// How good a bot is, and what it does: made from what it answered in a competition, another bot beside it if one likes.

import { html } from "../lib/preact.js";
import { api } from "../api.js";
import { href } from "../route.js";
import { Name, Panel, Table, addStyles, useFew } from "../components.js";
import { capital, count, digitsFor, digitsOf, number } from "../format.js";
import { Analysed, useAnalysis } from "./analysis.js";
import { Charts } from "./strength_charts.js";

addStyles(new URL("strength.css", import.meta.url));

const MOST_DIGITS = 4;
const FEW = 8; // weaknesses
/** How a figure was found. */
const FOUND = { exact: "exact", probed: "as probed: from what it was seen to do", estimate: "an estimate" };
const ADAPTED = "as probed: it adapts";

/** @param {{id: string, competition: any, bot: string, other?: string}} props  competition: its document as it is read */
export function Strength({ id, competition, bot, other = "" }) {
  const read = (name) => useAnalysis(name ? api("competitions", id, "strength") : null, { bot: name });
  const sides = [{ name: bot, read: read(bot) }, { name: other, read: read(other) }].filter(({ name }, at) => name && (!at || name !== bot));
  const found = sides.map(({ read: { data } }) => (data?.state === "done" ? data.strength : null));
  return html`
    <${Beside} id=${id} competition=${competition} bot=${bot} other=${other} />
    <div class=${`columns ${other ? "two" : ""}`}>
      ${sides.map(({ name, read: its }) => html`<${Panel} key=${name} title=${html`How good <${Name} name=${name} /> is`}>
        <${Analysed} read=${its} what="its matches" units="matches">${({ strength }) => html`<${Said} strength=${strength} />`}<//>
      <//>`)}
    </div>
    ${found.some(Boolean) && html`<${Charts} names=${sides.map(({ name }) => name)} all=${found.map(chartsOf)} />`}
  `;
}

/** Those of the analysis, which may say what a spot costs. */
function chartsOf(strength) {
  return strength?.analysis?.charts.length ? strength.analysis.charts : strength?.charts ?? [];
}

/** The bot to stand beside this one. */
function Beside({ id, competition: { data }, bot, other }) {
  const names = (data?.standings ?? []).map(({ name }) => name).filter((name) => name && name !== bot).sort();
  if (other && !names.includes(other)) names.unshift(other);
  if (!names.length) return null;
  const go = ({ target }) => (location.hash = href("c", id, "bot", bot, "strength", target.value));
  return html`<p class="row"><label>Beside it <select value=${other} onChange=${go}>
    <option value="" selected=${!other}>no other bot</option>
    ${names.map((name) => html`<option value=${name} selected=${name === other}>${name}</option>`)}
  </select></label></p>`;
}

function Said({ strength }) {
  const { analysis, refused, matches, of_matches: of } = strength;
  const from = `From ${of > matches ? `its latest ${number(matches)} of ${count(of, "match", "matches")}` : count(matches, "match", "matches")}, as its seats saw them.`;
  return html`
    ${refused && html`<p>${sentence(refused)}</p>`}
    ${analysis && html`
      ${analysis.figures.length > 0 && html`<dl class="found">${analysis.figures.map((figure) => html`<${Figure} figure=${figure} adapts=${Boolean(analysis.adapts)} />`)}</dl>`}
      ${analysis.adapts && html`<p class="note"><b>It adapts.</b> ${sentence(analysis.adapts)} So its figures are as probed: against another opponent they may be others.</p>`}
      <${Weaknesses} analysis=${analysis} />`}
    <p class="faint small">${from} […]: 95 % intervals. <a href="docs/arena/cli/analyse.md">What each number says</a></p>`;
}

function Figure({ figure: { name, value, unit, certainty, low, high, fraction, remark }, adapts }) {
  const interval = low === null || high === null ? null : [low, high];
  const digits = value === null ? 0 : Math.min(MOST_DIGITS, interval ? digitsOf(interval, digitsFor(value)) : digitsFor(value) + 2);
  const how = adapts && certainty === "exact" ? ADAPTED : FOUND[certainty];
  return html`<div>
    <dt>${capital(name)}</dt>
    <dd>
      ${value === null ? html`<b>no value</b>` : html`<b>${number(value, digits)}</b>${interval && html` [${interval.map((end) => number(end, digits)).join(", ")}]`} ${unit}${fraction && html` <span class="faint">(${fraction})</span>`}`}
      ${value !== null && html`<span class="how">${how}</span>`}
      ${remark && html`<span class="how">${sentence(remark)}</span>`}
    </dd>
  </div>`;
}

function Weaknesses({ analysis: { weaknesses, figures } }) {
  const [shown, more] = useFew(weaknesses, FEW, "weaknesses");
  if (!weaknesses.length) return null;
  const figure = (value) => (value === null ? "–" : number(value, Math.min(MOST_DIGITS, digitsFor(value) + 1)));
  const columns = [
    { id: "spot", title: "Spot", head: true, cell: (row) => row.spot },
    { id: "played", title: "Played", cell: (row) => row.played },
    { id: "best", title: "Better", cell: (row) => row.best },
    { id: "cost", title: "Costs", hint: "what it gives away to anybody", number: true, value: (row) => row.cost, cell: (row) => figure(row.cost) },
    weaknesses.some(({ exploited }) => exploited !== null) &&
      { id: "exploited", title: "A knower takes", hint: "its part of what an opponent that knows the bot can take", number: true, value: (row) => row.exploited, cell: (row) => figure(row.exploited) },
  ].filter(Boolean);
  return html`<div class="weak"><${Table} caption=${`Weaknesses, in ${figures[0]?.unit || "the unit of its value"}`} captioned columns=${columns} rows=${shown} keyOf=${(row) => row.spot} />${more}</div>`;
}

function sentence(text) {
  return capital(text) + (/[.!?]$/.test(text) ? "" : ".");
}
