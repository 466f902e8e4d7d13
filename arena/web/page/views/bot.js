// A bot in a competition: where a student sees how it did, against whom, how fast, and why it is out.

import { html, useMemo } from "../lib/preact.js";
import { api, useDocument } from "../api.js";
import { href } from "../route.js";
import { Chart, Empty, ErrorBar, Figures, Histogram, Loaded, Mean, Name, Page, Panel, State, Table, Tabs, crumbsOf, scaleOf } from "../components.js";
import { capital, count, digitsFor, intervalNote, list, milliseconds, number, percent, signed, termination, versioned } from "../format.js";
import { Matches } from "./pairing.js";
import { Strength } from "./strength.js";
import { Verdict } from "./verdict.js";

const READ_MS = 5000;
const TABS = [["", "Results"], ["strength", "Strength"]];

export default function Bot({ route }) {
  const { id, name, tab = "" } = route;
  const read = useDocument(api("competitions", id, "bot"), { name }, READ_MS);
  const about = useDocument(api("competitions", id));
  return html`<${Page} title=${html`<${Name} name=${versioned(name, read.data?.row?.version)} />`} label=${name}
    crumbs=${crumbsOf(id, about.data)}
    lead=${read.data?.team && `of the team ${read.data.team}`}>
    <${Tabs} label="Parts of the bot's page" items=${TABS.map(([part, title]) => ({ href: href("c", id, "bot", name, part), title, is: part === tab }))} />
    ${tab ? html`<${Strength} id=${id} competition=${about} bot=${name} other=${route.other} />` : html`<${Loaded} document=${read} what="the bot's page">${(bot) => html`<${Shown} competition=${id} bot=${bot} measure=${about.data?.measure} unit=${about.data?.unit} />`}<//>`}
  <//>`;
}

function Shown({ competition, bot, measure, unit }) {
  return html`
    ${bot.row && !(bot.row.eliminated && bot.verdicts.length) && html`<${Row} row=${bot.row} measure=${measure} unit=${unit} />`}
    ${bot.verdicts.length > 0 &&
    html`<${Panel} title=${bot.verdicts.length === 1 && !bot.verdicts[0].forgiven ? "Why it is out" : "Its verdicts"}>
      ${bot.verdicts.map((verdict) => html`<${Verdict} verdict=${verdict} competition=${competition} />`)}
    <//>`}
    <${Worst} bot=${bot} />
    <div class="columns two">
      ${bot.ratings.length > 0
        ? html`<${Panel} title="Rating over time"><${Curve} curve=${bot.ratings} name="Rating" say=${(value) => number(value, 1)} marks=${bot.versions} /><//>`
        : html`<${Panel} title="Score over time"><${Curve} curve=${bot.curve} name="Score in all" say=${signed} /><//>`}
      <${Panel} title="Decision times"><${Times} times=${bot.times} /><//>
    </div>
    ${bot.opponents.length > 0 && html`<${Panel} title=${`Against ${count(bot.opponents.length, "opponent")}`}><${Opponents} competition=${competition} bot=${bot} /><//>`}
    <${Panel} title=${`Matches (${number(bot.matches.length)}${bot.matches_more ? ", the latest" : ""})`}>
      <${Matches} competition=${competition} matches=${bot.matches} self=${bot.name} />
    <//>
  `;
}

function Row({ row, measure, unit }) {
  const out = row.eliminated || row.not_there;
  const digits = digitsFor(row.mean ?? 0);
  const share = measure?.is_share;
  const value = share ? (figure, digits) => percent(figure, Math.max(0, digits - 2)) : number;
  const has = (field) => row[field] != null;
  return html`<section class="panel" aria-label="In short">
    ${row.eliminated && html`<p class="row"><${State} state="offence">${row.eliminated.kind}<//> <span>eliminated: ${row.eliminated.text || termination(row.eliminated.kind)}</span></p>`}
    ${(row.not_there || row.stands === "not there") && html`<p>It had not come when this started, and takes no part in it.</p>`}
    <${Figures} items=${[
      has("rank") && ["Rank", `#${row.rank}`],
      has("rating") && ["Rating", number(row.rating, 1)],
      has("value") && [capital(measure?.title ?? "value"), html`<${Mean} mean=${row.value} interval=${row.interval} say=${value} digits=${share ? 3 : 2} />`],
      row.stage > 0 && ["Reached", `stage ${row.stage}`],
      has("played") && !out && ["Matches", number(row.played)],
      has("wins") && !out && ["Won", html`${number(row.wins)}${row.played > 0 && html` <span class="faint small">${percent(row.wins / row.played)}</span>`}`],
      has("draws") && !out && ["Drawn", number(row.draws)],
      has("losses") && !out && ["Lost", number(row.losses)],
      row.forgiven > 0 && !out && ["Forgiven", number(row.forgiven)],
      has("score") && !out && ["Score", signed(row.score)],
      has("mean") && !out && ["Per match", html`<${Mean} mean=${row.mean} interval=${row.interval} say=${signed} digits=${digits} />`],
    ]} />
    ${(has("mean") || has("value")) && !out && html`<p class="faint small">${intervalNote(unit)}</p>`}
  </section>`;
}

const WORST = 3;

/** Its worst matches: where its author begins to look. */
function Worst({ bot: { name, matches } }) {
  const worst = useMemo(() => matches
    .filter((match) => match.counts && match.kind === "completed" && match.players.filter((one) => one === name).length === 1)
    .map((match) => ({ match, score: match.scores[match.players.indexOf(name)], lost: lostBy(match, name, match.scores), points: lostBy(match, name, match.points) }))
    .filter(({ lost }) => lost > 0)
    .sort((one, other) => other.lost - one.lost || other.points - one.points)
    .slice(0, WORST), [matches]);
  if (!worst.length) return null;
  const both = (match, values) => [name, ...match.players.filter((one) => one !== name)].slice(0, 2).map((one) => signed(values[match.players.indexOf(one)])).join(" : ");
  return html`<${Panel} title="Where it lost most"><ul class="figures">${worst.map(({ match, score, points }) => html`<li>
    <a href=${href("m", match.id)}>match ${number(match.number)}</a>${" "}
    <b>${match.players.length === 2 ? both(match, match.scores) : signed(score)}</b>${points > 0 && match.players.length === 2 && ` (points ${both(match, match.points)})`}
    ${match.players.length > 1 && html` <span class="faint">against ${list(match.players.filter((one) => one !== name))}</span>`}</li>`)}</ul><//>`;
}

/** By how much a bot was behind the best of the others, or behind the dealer. */
function lostBy({ players }, name, values) {
  const others = values.filter((_, seat) => players[seat] !== name);
  return Math.max(...(others.length ? others : [0])) - values[players.indexOf(name)];
}

/** How a figure went from match to match; marks: from when each version played. */
function Curve({ curve, name, say, marks = [] }) {
  const points = useMemo(() => ({ x: curve.map(([at]) => at), series: [{ title: name.toLowerCase(), y: curve.map(([, score]) => score) }] }), [curve]);
  if (curve.length < 2) return html`<${Empty} title="Not enough matches for a curve." text="It needs two that are over." />`;
  const scores = points.series[0].y;
  const label = `${name}: ${say(scores[scores.length - 1])} now, between ${say(Math.min(...scores))} and ${say(Math.max(...scores))} on the way`;
  // Matches that were over in the same second would stand on one spot: then they are counted instead.
  const spread = points.x[points.x.length - 1] - points.x[0] > 60;
  const x = useMemo(() => (spread ? points.x : points.x.map((_, index) => index + 1)), [points]);
  const shown = useMemo(() => marks.map(([at, version]) => [spread ? at : 1 + points.x.findIndex((when) => when >= at), version]), [points, marks]);
  return html`<${Chart} label=${label} x=${x} series=${points.series} times=${spread} xTitle=${spread ? undefined : "matches over"} marks=${shown} />`;
}

function Times({ times }) {
  if (!times || !times.decisions) return html`<${Empty} title="No decision has been timed yet." />`;
  const { edges, counts } = times;
  const bars = counts.map((value, index) => {
    const to = edges[index + 1];
    const range = to === undefined ? `${milliseconds(edges[index])} or more` : `${milliseconds(edges[index])} to below ${milliseconds(to)}`;
    return { from: short(edges[index]), count: value, title: range };
  });
  const label = `How long its decisions took, of ${count(times.of_matches, "match", "matches")}: half within ${milliseconds(times.median)}, 95 % within ${milliseconds(times.p95)}, the longest ${milliseconds(times.max)}; the number below a bar is where it begins, in ms`;
  return html`<${Histogram} label=${label} bars=${trimmed(bars)} />
    <${Figures} items=${[["Decisions", number(times.decisions)], ["Median", milliseconds(times.median)], ["95 %", milliseconds(times.p95), "95 of 100 took no longer"], ["Longest", milliseconds(times.max)]]} />`;
}

function short(value) {
  return value >= 1000 ? `${number(value / 1000, value % 1000 ? 1 : 0)} s` : `${number(value, value > 0 && value < 1 ? 1 : 0)}`;
}

function trimmed(bars) {
  const last = bars.findLastIndex((bar) => bar.count > 0);
  const first = bars.findIndex((bar) => bar.count > 0);
  return bars.slice(Math.max(0, first - 1), last + 2);
}

function Opponents({ competition, bot }) {
  const rows = bot.opponents;
  const columns = useMemo(() => {
    const scale = scaleOf(rows.map((row) => [row.mean, row.interval]));
    const digits = digitsFor(Math.max(...rows.map((row) => Math.abs(row.mean ?? 0))));
    const figure = (id, title, cell = (row) => number(row[id])) => ({ id, title, number: true, value: (row) => row[id], cell });
    return [
      { id: "name", title: "Opponent", head: true, value: (row) => row.name, cell: (row) => html`<a class="name" title=${row.name} href=${href("c", competition, "pairing", bot.name, row.name)}><bdi>${row.name}</bdi></a>` },
      figure("played", "Played"), figure("wins", "Won"), figure("draws", "Drawn"), figure("losses", "Lost"),
      figure("score", "Score", (row) => signed(row.score)),
      figure("mean", "Per match", (row) => html`<${Mean} mean=${row.mean} interval=${row.interval} say=${signed} digits=${digits} />`),
      { id: "picture", title: "How sure", look: "bars-cell", cell: (row) => html`<${ErrorBar} mean=${row.mean} interval=${row.interval} scale=${scale} />` },
    ];
  }, [rows]);
  return html`<${Table} caption="Results by opponent" columns=${columns} rows=${rows} keyOf=${(row) => row.name} sort=${["mean", true]} />`;
}
