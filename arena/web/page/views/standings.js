// The table of a competition: who leads, by how much, and how sure that is.

import { html, useMemo, useState } from "../lib/preact.js";
import { BotLink, Empty, ErrorBar, Mean, Panel, State, Table, scaleOf } from "../components.js";
import { isSettled, settledColumns, settledNote } from "./settled.js";
import { GAMES } from "../games/games.js";
import { href } from "../route.js";
import { capital, count, digitsFor, intervalNote, number, percent, signed, termination } from "../format.js";

const FEW = 12; // so many need no search

/** @param {{competition: any}} props  a competition's document */
export function Standings({ competition }) {
  const [search, setSearch] = useState("");
  const all = competition.ranking.length ? placesOf(competition) : competition.standings;
  const columns = useMemo(() => columnsOf(competition, all), [competition]);
  const wanted = search.trim().toLowerCase();
  const rows = useMemo(() => (wanted ? all.filter((row) => row.name.toLowerCase().includes(wanted)) : all), [competition, wanted]);
  if (!all.length) {
    return html`<${Empty} title="There is nothing to rank yet." text="The table fills with the first match that is over." />`;
  }
  return html`<${Panel} title=${count(all.length, "bot")}
    side=${all.length > FEW &&
    html`<label class="row">Find
      <input type="search" value=${search} onInput=${(event) => setSearch(event.target.value)} placeholder="a bot's name" />
    </label>`}>
    <p class="faint">${rankedByText(competition, all)}</p>
    ${rows.length
      ? html`<${Table} caption="Standings" columns=${columns} rows=${rows} keyOf=${(row) => row.name}
          look=${(row) => (isUnlisted(row) ? "out" : "")} last=${(row) => row.rank === null} />`
      : html`<${Empty} title=${`No bot's name has “${search.trim()}” in it.`} />`}
    ${isSettled(all) && html`<p class="faint small">${settledNote(competition)}</p>`}
    <p class="faint small">${intervalNote(competition.unit)}</p>
    <p class="faint small">${pictureNote(competition, all)}</p>
  <//>`;
}

function placesOf({ ranking, not_there: away }) {
  const places = ranking.flatMap((place) => place.names.map((name) => ({ ...place, name })));
  return [...places, ...away.map((name) => ({ name, rank: null, stage: 0, score: null, not_there: true }))];
}

/** Whether a row has no numbers, as its bot is out or was not there; who has played nothing has numbers, but no rank. */
function isUnlisted(row) {
  return row.rank === null && Boolean(row.eliminated || row.not_there);
}

/** What ranks the bots of a competition that has standings (K1, K3, K4, K6): in a word, a row's figure, and in a sentence. */
export function rankedBy({ form, measure, standings }) {
  const named = (what, say, text = what) => ({ what, say, text: `Ranked by ${text}; equals share a rank.` });
  if (form === "ladder") return named("rating", (row) => number(row.rating, 1), "rating: the strength that a bot is almost sure to have, three standard deviations below its estimate");
  if (standings.some((row) => "share" in row)) return named("share won", (row) => percent(row.share, 1), "the share won, then by the mean score of a match");
  if (form === "league") return named(measure?.title ?? "value", (row) => (measure?.is_share ? percent(row.value, 1) : number(row.value, 1)));
  return named("matches won", (row) => number(row.wins), "matches won, then by score");
}

function rankedByText(competition, rows) {
  if (rows.some((row) => "stands" in row)) return "Nobody is ranked before the final.";
  if (rows.some((row) => "stage" in row)) return "Ranked by the score in the final, then by the stage that was reached; equals share a rank.";
  return rankedBy(competition).text;
}

function pictureNote({ form }, rows) {
  if (form === "ladder") return "In the picture the line is the strength; the thick bar is one standard deviation to each side, the thin one three.";
  return rows.some((row) => "stage" in row) ? "" : "In the picture the line is the mean, the bar its interval: where bars overlap much, the order may be chance.";
}

function columnsOf(competition, rows) {
  const bot = {
    id: "name", title: "Bot", head: true, value: (row) => row.name,
    cell: (row) => html`<${BotLink} competition=${competition.id} name=${row.name} version=${competition.versions[row.name]} />${offence(competition, row)}`,
  };
  const rank = { id: "rank", title: "#", hint: "rank", look: "rank", value: (row) => row.rank, cell: rankOf };
  const sample = rows[0] ?? {};
  if ("rating" in sample) return [rank, bot, ...ladder(rows)];
  if ("value" in sample) return [rank, bot, ...league(competition, rows)];
  if ("stage" in sample) return [..."rank" in sample ? [rank] : [], bot, ...elimination(rows)];
  return [rank, bot, ...roundRobin(competition, rows)];
}

function rankOf(row) {
  if (row.eliminated) return html`<span title="eliminated">out</span>`;
  return row.rank ?? html`<span title=${row.not_there ? "not there when it started" : "has played nothing that counts"}>–</span>`;
}

function offence(competition, row) {
  if (row.not_there) return html`${" "}<span class="faint small">not there</span>`;
  if (row.eliminated) {
    return html`${" "}<a href=${href("c", competition.id, "verdicts")} title=${row.eliminated.text || termination(row.eliminated.kind)}><${State} state="offence">${row.eliminated.kind}<//></a>`;
  }
  return row.offence ? html`${" "}<${State} state="offence">offence<//>` : null;
}

function figure(id, title, hint, value = (row) => row[id], cell = (row) => number(value(row))) {
  return { id, title, hint, number: true, value, cell: (row) => (isUnlisted(row) ? "" : cell(row)) };
}

function picture(id, title, value, interval, rows, inner = () => undefined) {
  const scale = scaleOf(rows.map((row) => [value(row), interval(row)]));
  return {
    id, title, look: "bars-cell",
    cell: (row) => row.rank !== null && html`<${ErrorBar} mean=${value(row)} interval=${interval(row)} inner=${inner(row)} scale=${scale} />`,
  };
}

function forgiven(rows) {
  return rows.some((row) => row.forgiven) ? [figure("forgiven", "Forgiven", "of these, lost by an offence that was forgiven; in no mean and no interval")] : [];
}

function roundRobin(competition, rows) {
  const points = GAMES[competition.game]?.points;
  const digits = digitsFor(Math.max(...rows.map((row) => Math.abs(row.mean ?? 0)), 0));
  return [
    ...settledColumns(rows),
    figure("played", "Played", "matches that count"),
    figure("wins", "Won", "matches won"),
    figure("draws", "Drawn", "matches drawn"),
    figure("losses", "Lost", "matches lost"),
    ...forgiven(rows),
    figure("score", "Score", "in all", undefined, (row) => signed(row.score)),
    ...(points ? [figure("points", "Points", points)] : []),
    figure("mean", "Per match", "mean score of a match, with its 95 % interval", undefined, (row) => html`<${Mean} mean=${row.mean} interval=${row.interval} say=${signed} digits=${digits} />`),
    picture("picture", "How sure", (row) => row.mean, (row) => row.interval, rows),
  ];
}

function league(competition, rows) {
  const share = competition.measure?.is_share;
  const say = share ? (value, digits) => percent(value, Math.max(0, digits - 2)) : number;
  return [
    ...settledColumns(rows),
    figure("played", "Played", "matches that count"),
    ...forgiven(rows),
    figure("value", capital(competition.measure?.title ?? "Value"), "what ranks, with its 95 % interval", undefined, (row) => html`<${Mean} mean=${row.value} interval=${row.interval} say=${say} digits=${share ? 3 : 1} />`),
    figure("score", "Chips", "won or lost in all", undefined, (row) => signed(row.score)),
    picture("picture", "How sure", (row) => row.value, (row) => row.interval, rows),
  ];
}

function ladder(rows) {
  return [
    figure("rating", "Rating", "what ranks: its strength less three standard deviations", undefined, (row) => number(row.rating, 1)),
    figure("mu", "Strength", "as estimated, with its standard deviation", undefined, (row) => html`${number(row.mu, 1)} <span class="faint" title="standard deviation">± ${number(row.sigma, 1)}</span>`),
    figure("played", "Played", "matches that count"),
    figure("wins", "Won", "in which it was first alone"),
    figure("draws", "Shared", "in which it shared the first place"),
    figure("losses", "Lost", "all others"),
    figure("offences", "Offences", "matches lost by an offence of its own"),
    picture("picture", "How sure", (row) => row.mu, (row) => around(row, 3), rows, (row) => around(row, 1)),
  ];
}

function around({ mu, sigma }, times) {
  return mu == null ? null : [mu - times * sigma, mu + times * sigma];
}

function elimination(rows) {
  const last = Math.max(...rows.map((row) => row.stage));
  return [
    figure("stage", "Reached", "the last stage that it was in", undefined, (row) => (row.stage === last && "score" in row && row.score !== null ? "final" : row.stage ? `stage ${row.stage}` : "")),
    ...(rows.some((row) => row.stands) ? [{ id: "stands", title: "Stands", value: (row) => row.stands, cell: (row) => html`<${State} state=${row.stands} />` }] : []),
    ...(rows.some((row) => "score" in row) ? [figure("score", "In the final", "score", undefined, (row) => (row.score === null ? "" : signed(row.score)))] : []),
  ];
}
