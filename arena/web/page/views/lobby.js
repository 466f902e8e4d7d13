// The lobby: competitions, tables, bots, the queue, as the arena pushes them.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { botAddress, useLobby } from "../api.js";
import { href } from "../route.js";
import { Empty, Failure, Loading, Name, Page, Panel, Progress, State, Versus, Waits, WaitsFor, competitionTitle, useFew } from "../components.js";
import { ago, count, duration, isOffence, list, number, time, title } from "../format.js";

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
        <${WaitsFor} competition=${competition} />
      </article>`;
    })}
  </section>`;
}

function left(competition) {
  if (competition.state === "paused") return ", paused";
  return competition.left_s === null ? "" : `, about ${duration(competition.left_s)} left`;
}

function NoCompetition({ lobby }) {
  const next = lobby.runs.filter((run) => run.next_at).sort((a, b) => a.next_at - b.next_at)[0];
  return html`<${Empty} title="No competition is on."
    text=${next ? `The next, ${next.run}, starts at ${time(next.next_at)}.` : "An instructor starts one; what has been played is kept."}>
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

/** What it still takes until a run starts, in the words of `arena status`. */
function starts(run) {
  if (run.undecided.length) return `when what ${list(run.undecided, 8)} handed in before is checked`;
  if (run.starts_by) return `by ${new Date(run.starts_by * 1000).toLocaleTimeString("en-GB")}, sooner if nobody else comes`;
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

const QUIET_S = 10; // without a decision: somebody thinks long, or hangs

function minutes(passed) {
  return passed > 60 ? passed - (passed % 60) : passed;
}

const STATES = { here: "here", away: "away: it may come back", leaving: "leaving" };

function Bots({ lobby }) {
  const [shown, rest] = useFew(lobby.bots, 30, "bots");
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
  const [shown, rest] = useFew(lobby.latest, 10, "matches");
  if (!lobby.latest.length) return html`<p class="faint">Nothing has been played yet.</p>`;
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
