// One competition: what it is, how far, and its tabs.

import { html } from "../lib/preact.js";
import { api, useDocument, useLobby } from "../api.js";
import { GAMES, LIMITS } from "../games/games.js";
import { href } from "../route.js";
import { Empty, Loaded, Page, Panel, Progress, State, Table, Tabs, WaitsFor, competitionTitle } from "../components.js";
import { count, duration, formTitle, number, time, title } from "../format.js";
import { Standings } from "./standings.js";
import { Cross } from "./cross.js";
import { Bracket } from "./bracket.js";
import { Luck } from "./luck.js";
import { Matches } from "./pairing.js";
import { Verdicts } from "./verdict.js";

const ON = new Set(["running", "paused"]);
const READ_MS = 3000; // while it goes on
const ALL_MS = 30_000;

/** The tabs that a form of competition has; the first is shown if none is named. */
function tabsOf(competition) {
  const tabs = competition.form === "elimination" ? [["bracket", "Bracket"]] : [["standings", "Standings"]];
  if (competition.form === "elimination") tabs.push(["standings", competition.ranking.length ? "Ranking" : "Who is in"]);
  if (competition.form === "round_robin") tabs.push(["cross", "Cross table"]);
  tabs.push(["matches", "Matches"], ["verdicts", `Verdicts${competition.verdicts.length ? ` (${competition.verdicts.length})` : ""}`], ["rules", "Settings"]);
  return tabs;
}

export default function Competition({ route }) {
  const read = useDocument(api("competitions", route.id), null, READ_MS);
  const heading = read.data && competitionTitle(read.data);
  return html`<${Page} title=${heading ? heading.title : "Competition"} crumbs=${[{ href: href("competitions"), title: "Competitions" }]}
    lead=${heading && html`<span>${heading.about.join(", ")}</span>${" "}<span>started ${time(read.data.started_at)}</span>${" "}${read.data.finished_at && html`<span>over ${time(read.data.finished_at)}</span>`}`}
    side=${read.data && html`<${State} state=${read.data.state} />`}>
    <${Loaded} document=${read} what="the competition">
      ${(competition) => html`<${Shown} competition=${competition} tab=${route.tab} />`}
    <//>
  <//>`;
}

function Shown({ competition, tab }) {
  const tabs = tabsOf(competition);
  const is = tabs.some(([id]) => id === tab) ? tab : tabs[0][0];
  return html`
    ${competition.missing && html`<p class="note" role="note">${competition.missing}</p>`}
    ${ON.has(competition.state) && html`<${Going} competition=${competition} />`}
    <${Tabs} label="Parts of the competition" items=${tabs.map(([id, text]) => ({ href: href("c", competition.id, id), title: text, is: id === is }))} />
    ${tab && is !== tab && html`<p class="faint">There is no such part of ${formTitle(competition.form) === "elimination" ? "an" : "a"} ${formTitle(competition.form)}: here is its first.</p>`}
    ${body(is, competition)}
  `;
}

function body(tab, competition) {
  if (tab === "standings") return html`<${Standings} competition=${competition} /><${Luck} competition=${competition} />`;
  if (tab === "cross") return html`<${Cross} competition=${competition} everyMs=${ON.has(competition.state) ? READ_MS : undefined} />`;
  if (tab === "bracket") return html`<${Bracket} competition=${competition} />`;
  if (tab === "matches") return html`<${AllMatches} competition=${competition} />`;
  if (tab === "verdicts") return html`<${Verdicts} competition=${competition} />`;
  return html`<${Rules} competition=${competition} />`;
}

function Going({ competition }) {
  const { lobby } = useLobby();
  const live = lobby?.competitions.find(({ id }) => id === competition.id);
  const done = live?.settled ?? competition.settled ?? competition.played;
  const all = live?.scheduled ?? competition.scheduled;
  const left = live?.left_s ?? competition.left_s ?? null;
  return html`<section class="stack far" aria-label="How far it is">
    ${all ? html`<${Progress} done=${done} all=${all} label="matches played" />` : null}
    <p class="row">
      <span><b>${number(done)}</b>${all ? ` of ${count(all, "match", "matches")}` : " matches"}</span>
      ${left !== null && html`<span class="faint">about ${duration(left)} left</span>`}
      <${WaitsFor} competition=${live} />
    </p>
  </section>`;
}

function AllMatches({ competition }) {
  const read = useDocument(api("competitions", competition.id, "matches"), { limit: 100 }, ON.has(competition.state) ? READ_MS : ALL_MS);
  return html`<${Panel} title=${`Matches (${number(competition.played)})`}>
    <${Loaded} document=${read} what="the matches">
      ${({ matches, more }) => html`<${Matches} competition=${competition.id} matches=${matches} more=${more} />`}
    <//>
  <//>`;
}

function Rules({ competition }) {
  const rows = (values, says = {}) => Object.entries(values ?? {}).map(([name, value]) => ({ name, value, text: says[name] ?? "" }));
  const columns = [
    { id: "name", title: "Name", head: true, look: "said", value: (row) => row.name, cell: (row) => html`<code>${row.name}</code> <span class="faint small">${withCode(row.text)}</span>` },
    { id: "value", title: "Value", number: true, cell: (row) => plain(row.value) },
  ];
  return html`<div class="columns two">
    <${Panel} title=${title(competition.game)}>
      ${competition.measure && html`<p>Ranked by: ${competition.measure.title}.</p>`}
      <${Table} caption="Settings of its matches" captioned columns=${columns} rows=${rows(competition.settings, GAMES[competition.game]?.settings)} keyOf=${(row) => row.name} />
    <//>
    <${Panel} title="Limits">
      ${competition.limits
        ? html`<${Table} caption="What a bot may take" captioned columns=${columns} rows=${rows(competition.limits, LIMITS)} keyOf=${(row) => row.name} />`
        : html`<${Empty} title="No limits are written down." />`}
    <//>
    <${Actions} competition=${competition} />
  </div>`;
}

/** A text with \`names\` in it, which are set as code. @param {string} text */
function withCode(text) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}

function Actions({ competition }) {
  if (!competition.actions?.length) return null;
  return html`<${Panel} title="What instructors did">
    <ul class="lines">${competition.actions.map((action) => html`<li>${Object.entries(action).map(([name, value]) => value !== null && html`<span class=${name === "at" ? "faint" : ""}>${name === "at" ? time(value) : plain(value)} </span>`)}</li>`)}</ul>
  <//>`;
}

function plain(value) {
  if (value == null) return "none";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "number") return Number.isInteger(value) ? number(value) : String(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
