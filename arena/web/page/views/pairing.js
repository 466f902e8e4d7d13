// Two bots against each other: the result and every match; and the list of matches of other views.

import { html, useMemo, useState } from "../lib/preact.js";
import { api, fetchDocument, useDocument } from "../api.js";
import { href } from "../route.js";
import { BotLink, Chart, Empty, Figures, Loaded, Mean, Name, Page, Panel, State, Table, crumbsOf, useFew } from "../components.js";
import { count, digitsFor, duration, intervalNote, isOffence, number, signed, termination, time } from "../format.js";

const READ_MS = 5000;
const STEP = 100; // matches at a time
const FEW = 25; // are shown at first

export default function Pairing({ route }) {
  const { id, a, b } = route;
  const read = useDocument(api("competitions", id, "pairing"), { a, b }, READ_MS);
  const about = useDocument(api("competitions", id));
  return html`<${Page} title=${html`<${BotLink} competition=${id} name=${a} /> <span class="faint">against</span> <${BotLink} competition=${id} name=${b} />`} label=${`${a} against ${b}`}
    crumbs=${[...crumbsOf(id, about.data), { href: href("c", id, "cross"), title: "Cross table" }]}>
    <${Loaded} document=${read} what="the pairing">
      ${(pairing) => html`<${Shown} competition=${id} pairing=${pairing} />`}
    <//>
  <//>`;
}

function Shown({ competition, pairing: { a, b, band, cell, luck, unit, matches, matches_more: more } }) {
  if (!matches.length) return html`<${Empty} title="They have not met yet." text="Their matches will be listed here." />`;
  return html`
    ${cell && cell.played > 0 &&
    html`<${Panel} title="What it came to">
      <p class="faint">As <${Name} name=${a} /> sees it.</p>
      <${Figures} items=${[
        ["Matches that count", number(cell.played)],
        ["Won", number(cell.wins)],
        ["Drawn", number(cell.draws)],
        ["Lost", number(cell.losses)],
        ["Score", signed(cell.score)],
        ["Per match", html`<${Mean} mean=${cell.mean} interval=${cell.interval} say=${signed} digits=${digitsFor(cell.mean ?? 0)} />`],
      ]} />
      ${luck && html`<${Figures} items=${[["Without luck, per match", html`<${Mean} mean=${luck.mean} interval=${luck.interval} say=${signed} digits=${3} />`]]} />`}
      <p class="faint small">${intervalNote(unit)}</p>
      ${band.length > 2 && html`<${Band} name=${a} band=${band} />`}
      ${matches.length > 2 && !more && html`<${Course} name=${a} matches=${matches} />`}
    <//>`}
    <${Panel} title=${`Matches (${more ? "the latest " : ""}${number(matches.length)})`}>
      <${Matches} competition=${competition} matches=${matches} self=${a === b ? null : a} />
    <//>
  `;
}

/** How sure the mean has become: the band is its 95 % interval after each match. */
function Band({ name, band }) {
  const { x, series, edges } = useMemo(() => ({
    x: band.map(([matches]) => matches),
    series: [{ title: "per match", y: band.map(([, mean]) => mean) }],
    edges: { low: band.map(([, , low]) => low), high: band.map(([, , , high]) => high) },
  }), [band]);
  const [matches, mean, low, high] = band[band.length - 1];
  const range = low === null ? "" : ` [${signed(low, 2)}, ${signed(high, 2)}]`;
  return html`<${Chart} label=${`Mean of ${name} per match, and its 95 % interval: ${signed(mean, 2)}${range} after ${count(matches, "match", "matches")}`} x=${x} series=${series} band=${edges} xTitle="matches" height=${200} />`;
}

function Course({ name, matches }) {
  const { x, series, end } = useMemo(() => {
    let sum = 0;
    const inOrder = matches.slice().sort((one, other) => one.number - other.number);
    const y = [0, ...inOrder.map((match) => (sum += match.scores[Math.max(0, match.players.indexOf(name))] ?? 0))];
    return { x: y.map((_, index) => index), series: [{ title: "score", y }], end: sum };
  }, [matches]);
  return html`<${Chart} label=${`Score of ${name} in all, match by match: ${signed(end)} after ${count(matches.length, "match", "matches")}`} x=${x} series=${series} xTitle="matches" height=${200} />`;
}

/**
 * Matches as a list; each links to its table, where it can be stepped through.
 * @param {object} props
 * @param {string} props.competition
 * @param {any[]} props.matches  outlines
 * @param {string | null} [props.self]  the bot whose side is shown
 * @param {boolean} [props.more]  whether the arena has older ones of this competition
 */
export function Matches({ competition, matches, self = null, more = false }) {
  const [older, setOlder] = useState([]);
  const [rest, setRest] = useState(more);
  const [state, setState] = useState("");
  const columns = useMemo(() => columnsOf(competition, self, matches), [competition, self, matches]);
  const rows = useMemo(() => {
    const seen = new Set(matches.map((match) => match.id));
    return [...matches, ...older.filter((match) => !seen.has(match.id))];
  }, [matches, older]);
  const [shown, button] = useFew(rows, FEW, "matches");
  const fetchMore = async () => {
    setState("Loading…");
    try {
      const before = Math.min(...rows.map((match) => match.number));
      const page = await fetchDocument(api("competitions", competition, "matches"), { before, limit: STEP });
      setOlder([...older, ...page.matches]);
      setRest(page.more);
      setState("");
    } catch (error) {
      setState(error.message);
    }
  };
  if (!rows.length) return html`<${Empty} title="No match is over yet." text="A match that is being played can be watched from the lobby." />`;
  return html`<${Table} caption="Matches" columns=${columns} rows=${shown} keyOf=${(match) => match.id} />
    ${button}
    ${!button && rest &&
    html`<p class="row"><button type="button" onClick=${fetchMore}>Show older matches</button><span role="status">${state}</span></p>`}`;
}

function columnsOf(competition, self, matches) {
  const points = matches.some((match) => match.points?.some((value) => value !== 0));
  const one = matches.every((match) => match.players.length === 1);
  const others = (match) => (self === null ? match.players : match.players.filter((_, seat) => seat !== match.players.indexOf(self)));
  const figures = (match, values) =>
    self === null ? values.map((value) => signed(value)).join(" : ") : signed(values[match.players.indexOf(self)]);
  const mine = (match, values) => values?.[self === null ? 0 : match.players.indexOf(self)] ?? null;
  return [
    { id: "number", title: "No.", hint: "its number in the competition", number: true, value: (match) => match.number, cell: (match) => html`<a href=${href("m", match.id)}><span class="unseen">match </span>${number(match.number)}</a>` },
    !(one && self) && {
      id: "players", title: self ? "Against" : "Players", value: (match) => others(match).join(" "),
      cell: (match) => html`<span class="players">${others(match).map((name) => html`<${BotLink} competition=${competition} name=${name} />`)}</span>`,
    },
    self && !one && { id: "seat", title: "Seat", number: true, value: (match) => match.players.indexOf(self) + 1 },
    { id: "score", title: "Score", number: true, value: (match) => mine(match, match.scores), cell: (match) => (match.scores ? figures(match, match.scores) : "–") },
    points && { id: "points", title: "Points", number: true, value: (match) => mine(match, match.points), cell: (match) => figures(match, match.points) },
    { id: "kind", title: "How it ended", value: (match) => match.kind, cell: (match) => html`<${Ended} match=${match} />` },
    { id: "at", title: "When", number: true, value: (match) => match.finished_at, cell: (match) => time(match.finished_at) },
    { id: "took", title: "Took", number: true, value: (match) => match.finished_at - match.started_at, cell: (match) => duration(match.finished_at - match.started_at) },
  ].filter(Boolean);
}

function Ended({ match }) {
  if (match.kind === "completed") return html`<span class="faint">completed${match.counts === false ? ", does not count" : ""}</span>`;
  const who = match.players[match.seat];
  return html`<${State} state=${isOffence(match.kind) ? "offence" : "void"}>${match.kind}<//>
    <span class="faint small"> ${who ? html`by <${Name} name=${who} look="short" />` : termination(match.kind)}</span>`;
}
