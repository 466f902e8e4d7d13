// The lobby: competitions, tables, bots, the queue, as the arena pushes them.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { api, botAddress, useDocument, useLobby } from "../api.js";
import { useMe } from "../login.js";
import { href } from "../route.js";
import { rankedBy } from "./standings.js";
import { Empty, Failure, Loading, Name, Page, Panel, Progress, State, Versus, Waits, WaitsFor, competitionTitle, useFew } from "../components.js";
import { ago, byName, count, dated, duration, isOffence, list, number, ownerOf, time, title } from "../format.js";

export default function Lobby() {
  const { lobby, error } = useLobby();
  if (!lobby) {
    return html`<${Page} title="Lobby">${error ? html`<${Failure} error=${error} />` : html`<${Loading} what="the lobby" />`}<//>`;
  }
  const more = (shown, rest) => number(shown.length + rest);
  return html`<${Page} title="Lobby" label="Lobby"
    lead=${`${lobby.arena.practice ? "A practice arena" : "An arena"} for ${list(lobby.arena.games.map((game) => game.title), 9)}`}
    side=${html`<a class="button main" href=${href("play")}>Sit down and play</a>`}>
    ${lobby.arena.unwritten && html`<p class="panel">Play waits: ${lobby.arena.unwritten}. It goes on by itself; the arena's log says why.</p>`}
    <${Competitions} lobby=${lobby} />
    <${Waiting} runs=${lobby.runs.filter((run) => run.least !== null)} />
    <${Coming} runs=${lobby.runs.filter((run) => run.next_at)} closes=${lobby.arena.submissions_close} />
    <div class="lobby">
      <${Panel} look="tables" title=${`At the tables (${more(lobby.matches, lobby.matches_more)})`}><${Tables} lobby=${lobby} /><//>
      <${Panel} look="connected" title=${`Bots (${more(lobby.bots, lobby.bots_more)})`}><${Bots} lobby=${lobby} /><//>
      <div class="stack">
        ${(lobby.queue.length > 0 || lobby.competitions.length > 0) &&
        html`<${Panel} title=${`Next (${more(lobby.queue, lobby.queue_more)})`}><${Queue} lobby=${lobby} /><//>`}
        <${Panel} title="Just over"><${Latest} lobby=${lobby} /><//>
      </div>
    </div>
  <//>`;
}

function Competitions({ lobby }) {
  const me = useMe();
  if (!lobby.competitions.length) return html`<${NoCompetition} lobby=${lobby} />`;
  return html`<section class="going" aria-label="Competitions">
    ${lobby.competitions.map((competition) => {
      const heading = competitionTitle(competition);
      return html`<article class="panel" key=${competition.id}>
        <div class="heading">
          <h2><a href=${href("c", competition.id)}><${Name} name=${heading.title} /></a></h2>
          <${State} state=${competition.state} />
        </div>
        <p class="faint small">${heading.about.join(", ")} · ${count(competition.bots, "bot")}</p>
        ${competition.scheduled
          ? html`<${Progress} done=${competition.settled} all=${competition.scheduled} label=${`matches played in ${heading.title}`} />
              <p>${number(competition.settled)} of ${count(competition.scheduled, "match", "matches")}${left(competition)}</p>`
          : html`<p>${count(competition.settled, "match", "matches")} so far${competition.form === "ladder" ? "; a ladder has no end" : ""}</p>`}
        <${Leaders} id=${competition.id} me=${me} />
        <${WaitsFor} competition=${competition} />
      </article>`;
    })}
  </section>`;
}

/** The first three of what is on, and one's own best bot: how it moves, and what keeps it from being first. */
function Leaders({ id, me }) {
  const { data } = useDocument(api("competitions", id), null, LEADERS_MS);
  const came = useRef(/** @type {Map<string, number>} */ (new Map()));
  const rows = (data?.standings ?? []).filter((row) => row.rank != null);
  if (!rows.length) return null;
  const { what, say } = rankedBy(data);
  const own = me?.kind === "owner" ? rows.find((row) => ownerOf(row.name) === me.name) : undefined;
  const line = (row, at) => html`<li key=${row.name} class=${row === own ? "own" : ""}><span class="rank">${row.rank}</span> <${Name} name=${row.name} /> <span class="figure">${at === 0 && html`<span class="faint">${what}</span> `}${say(row)}</span>
    ${row === own && html`<span class="faint small">${moved(came.current, row)}${behind(rows, row, say, what)}</span>`}</li>`;
  return html`<ol class="leaders" aria-label="The first by ${what}">${rows.slice(0, 3).map(line)}${own && !rows.slice(0, 3).includes(own) && line(own)}</ol>`;
}

const LEADERS_MS = 15_000;

/** How many places a bot has gained or lost since this page was opened. */
function moved(came, { name, rank }) {
  if (!came.has(name)) came.set(name, rank);
  const by = came.get(name) - rank;
  return by ? `${by > 0 ? "up" : "down"} ${count(Math.abs(by), "place")} since you came; ` : "";
}

function behind([first, second], row, say, what) {
  if (row.rank > first.rank) return `first has ${say(first)} ${what}`;
  return second ? `first, before ${second.name} with ${say(second)} ${what}` : "";
}

function left(competition) {
  if (competition.state === "paused") return ", paused";
  return competition.left_s === null ? "" : `, about ${duration(competition.left_s)} left`;
}

function NoCompetition({ lobby }) {
  const text = lobby.runs.length ? "What comes next stands below." : "An instructor starts one; what has been played is kept.";
  return html`<${Empty} title="No competition is on." text=${text}>
    <p class="row"><a href=${href("competitions")}>All competitions</a> <a href=${href("instructor")}>Start one</a></p>
  <//>`;
}

/** Runs that start as soon as enough bots have come. */
function Waiting({ runs }) {
  if (!runs.length) return null;
  return html`<section class="going" aria-label="Runs that wait for bots">
    ${runs.map((run) => html`<article class="panel" key=${run.run}>
      <div class="heading"><h2><${Name} name=${run.run} /></h2></div>
      <p>Waits${run.until ? ` until ${time(run.until)}` : ""}: ${number(run.come)}${run.expected ? ` of ${number(run.expected)}` : ""} here, it starts ${starts(run)}</p>
      ${run.missing.length > 0 && html`<${Waits} names=${run.missing} />`}
    </article>`)}
  </section>`;
}

/** The runs that have a time, the next first, and until when programs are taken. */
function Coming({ runs, closes }) {
  if (!runs.length && !closes) return null;
  const isOver = closes && closes * 1000 < Date.now();
  return html`<${Panel} title="Coming">
    <ul class="lines">
      ${closes && html`<li><b>${isOver ? "Submissions are closed" : "Submissions close"}</b> <span class="faint">${isOver ? "since " : ""}${dated(closes)}</span></li>`}
      ${[...runs].sort((one, other) => one.next_at - other.next_at).map((run) => {
        const { title: name, about } = competitionTitle(run);
        return html`<li key=${run.run}><b><${Name} name=${name} /></b> <span class="faint">${about.join(", ")} · ${dated(run.next_at)}${run.too_late ? ` · ${count(run.too_late.count, "bot")} may not be checked by then` : ""}</span></li>`;
      })}
    </ul>
  <//>`;
}

/** What it still takes until a run starts, in the words of `arena status`. */
function starts(run) {
  if (run.undecided.length) return `when what ${list(run.undecided, 8)} handed in before is checked`;
  if (run.starts_by) return `by ${time(run.starts_by, "medium")}, sooner if nobody else comes`;
  return `with ${number(run.least)}${run.own ? ` besides ${number(run.own)} of its own` : ""}`;
}

/** How long no decision has been made at each table, in seconds, as far as this page has seen it. */
function useQuiet(matches) {
  const seen = useRef(/** @type {Map<string, {decisions: number, since: number}>} */ (new Map()));
  const before = seen.current;
  seen.current = new Map(matches.map(({ match, decisions, since_s: since }) => {
    const last = before.get(match);
    return [match, last?.decisions === decisions ? last : { decisions, since }];
  }));
  return ({ match, since_s: since }) => since - seen.current.get(match).since;
}

function Tables({ lobby }) {
  const quiet = useQuiet(lobby.matches);
  const [shown, rest] = useFew(lobby.matches, 12, "tables");
  const recent = lobby.latest.filter((match) => match.finished_at > Date.now() / 1000 - RECENT_S).length;
  if (!lobby.matches.length && recent) {
    return html`<${Empty} title="No match is on at this moment."
      text=${`${count(recent, "match was", "matches were")} over in the last minute: quick bots need less than a second.`}>
      <p><a href=${href("m", lobby.latest[0].id)}>Watch the latest again</a></p><//>`;
  }
  if (!lobby.matches.length) {
    return html`<${Empty} title="Nobody is playing."
      text="As soon as two bots meet, their table can be watched here. You can sit down yourself at any time." />`;
  }
  return html`<ul class="matches">
      ${shown.map(
        (match) => html`<li key=${match.match}>
          <a class="match" href=${href("m", match.match)}>
            <${Versus} players=${match.players} scores=${match.scores} />
            <span class="faint small about">
              ${title(match.game)} · ${count(match.decisions, "decision")} · ${duration(minutes(match.since_s))}${match.viewers > 0 && ` · ${match.viewers} watching`}
              ${quiet(match) >= QUIET_S && html` <${State} state="waits">no decision for ${duration(quiet(match))}<//>`}
            </span>
          </a>
        </li>`,
      )}
    </ul>
    ${rest}
    ${!rest && lobby.matches_more > 0 && html`<p class="faint">and ${count(lobby.matches_more, "more table")}</p>`}`;
}

const RECENT_S = 60;
const QUIET_S = 10; // without a decision: somebody thinks long, or hangs

function minutes(passed) {
  return passed > 60 ? passed - (passed % 60) : passed;
}

const STATES = { here: "here", away: "away: it may come back", leaving: "leaving" };

function Bots({ lobby }) {
  const [shown, rest] = useFew([...lobby.bots].sort((one, other) => byName(one.name, other.name)), 30, "bots");
  if (!lobby.bots.length) {
    return html`<${Empty} title="No bot is here."
      text=${`A bot connects to ${botAddress()}; the guide for its author says how in ten lines.`} />`;
  }
  return html`<ul class="bots">
      ${shown.map(
        (bot) => html`<li key=${bot.name} class="bot" title=${bot.games.map(title).join(", ")}>
          <span class=${`dot ${bot.state}`} role="img" aria-label=${STATES[bot.state] ?? bot.state} title=${STATES[bot.state] ?? bot.state}></span>
          <${Name} name=${bot.name} />
          <span class="faint small doing">
            ${bot.state === "here" ? (bot.playing > 0 ? count(bot.playing, "table") : "free") : bot.state}
            ${bot.rtt_ms !== null && html` · <span title="round trip">${bot.rtt_ms < 1 ? "<1" : number(bot.rtt_ms, bot.rtt_ms < 10 ? 1 : 0)} ms</span>`}
          </span>
        </li>`,
      )}
    </ul>
    ${rest}
    ${!rest && lobby.bots_more > 0 && html`<p class="faint">and ${count(lobby.bots_more, "more bot")}</p>`}`;
}

function Queue({ lobby }) {
  const [shown, rest] = useFew(lobby.queue, 8, "pairings");
  if (!lobby.queue.length) return html`<p class="faint">Nothing waits.</p>`;
  return html`<ol class="lines">
      ${shown.map(
        (next) => html`<li>
          <span class="players">${next.players.map((name) => html`<${Name} name=${name} />`)}</span>
          ${next.waits_for.length > 0 && html`<${Waits} names=${next.waits_for} />`}
        </li>`,
      )}
    </ol>
    ${rest}
    ${!rest && lobby.queue_more > 0 && html`<p class="faint">and ${number(lobby.queue_more)} more</p>`}`;
}

function Latest({ lobby }) {
  const now = useNow(10_000);
  const latest = lobby.latest.filter(({ players }) => players.length === 1 || new Set(players).size > 1);
  const [shown, rest] = useFew(latest, 10, "matches");
  if (!latest.length) return html`<p class="faint">Nothing has been played yet.</p>`;
  return html`<ul class="lines">
    ${shown.map(
      (match) => html`<li key=${match.id}>
        <a class="match" href=${href("m", match.id)}>
          <${Versus} players=${match.players} scores=${match.scores} />
          <span class="faint small about">
            ${isOffence(match.termination) && html`<${State} state="offence">${match.termination}<//> `}${match.termination === "void" && html`<${State} state="void" /> `}${title(match.game)} · ${ago(match.finished_at, now)}
          </span>
        </a>
      </li>`,
    )}
  </ul>${rest}`;
}

/** The time, updated regularly. */
function useNow(everyMs) {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
