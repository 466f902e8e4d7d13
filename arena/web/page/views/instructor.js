// The instructor's page: with that token competitions are started, paused and stopped, matches voided, bots removed, a class imported.
// Requests go over a socket with the token, and the arena answers each in one line, shown here.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { api, setToken, useDocument, useLobby, useToken, whose } from "../api.js";
import { href } from "../route.js";
import { Empty, Loading, Name, Page, Panel, Progress, State, WaitsFor, competitionTitle } from "../components.js";
import { Ask, Heard, useWord } from "./instructor_ask.js";
import { Log, Roster } from "./instructor_class.js";
import { Start } from "./instructor_start.js";
import { count, duration, number, time } from "../format.js";

const MOST_OVER = 50; // of the latest; the command line names any other
const AWAY_MS = 5000; // until an arena that did not answer is asked again

export default function Instructor() {
  const token = useToken();
  const [me, setMe] = useState(/** @type {any} */ (null));
  const [refusal, setRefusal] = useState("");
  const [tries, setTries] = useState(0);
  useEffect(() => {
    setMe(null);
    setRefusal("");
    if (!token) return undefined;
    let gone = false;
    let timer = 0;
    whose(token).then(
      (found) => gone || setMe(found),
      (error) => {
        if (gone) return;
        setRefusal(error.message);
        // Not refused: the arena is away, and may come back.
        if (!error.status) timer = setTimeout(() => setTries((n) => n + 1), AWAY_MS);
      },
    );
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [token, tries]);
  // A token that is nobody's is not stored.
  const enter = (value) => whose(value).then(() => setToken(value), (error) => setRefusal(error.message));
  return html`<${Page} title="Instructor">
    ${me?.kind === "instructor" ? html`<${Desk} />` : html`<${Entry} token=${token} me=${me} refusal=${refusal} onEnter=${enter} />`}
  <//>`;
}

function Entry({ token, me, refusal, onEnter }) {
  const field = useRef(null);
  const enter = (event) => {
    event.preventDefault();
    onEnter(field.current.value.trim());
  };
  if (token && !me && !refusal) return html`<${Loading} />`;
  return html`<${Panel} title="Your token" look="narrow">
    ${me && html`<p>You are logged in as <bdi>${me.name}</bdi>. This page takes an instructor's token.</p>`}
    <form class="stack" onSubmit=${enter}>
      <label class="field">Token
        <input type="password" ref=${field} autocomplete="off" required spellcheck="false" />
      </label>
      ${refusal && html`<${Heard} word=${{ error: refusal }} />`}
      <p><button class="main">Enter</button></p>
    </form>
    <p class="faint small">The instructor's token opens everything here. It stays in this browser until you log out at the top of the page. It is made with <code>arena roster instructor</code> where the arena runs.</p>
  <//>`;
}

function Desk() {
  const { lobby } = useLobby();
  const handedIn = useModule(Boolean(lobby?.arena.submissions), () => import("./instructor_submissions.js"));
  const machines = useModule(Boolean(lobby?.arena.hosts), () => import("./instructor_hosts.js"));
  if (!lobby) return html`<${Loading} what="the lobby" />`;
  return html`
    ${lobby.arena.filling && html`<p class="panel">Make room: ${lobby.arena.filling}.</p>`}
    ${handedIn && html`<${handedIn.Warning} />`}
    ${lobby.runs.filter((run) => run.too_late).map((run) => html`<p key=${run.run} class="panel" role="status">
      <b><${Name} name=${run.run} /> starts at ${time(run.next_at)}; versions that are missing: ${number(run.too_late.count)}.</b>
      To build and check that many takes about ${duration(run.too_late.needed_s)}, longer than the time left.
    </p>`)}
    <${Panel} title="Competitions that are on"><${Going} lobby=${lobby} /><//>
    <div class="columns two">
      <${Panel} title="Start a competition"><${Start} lobby=${lobby} /><//>
      <div class="stack">
        <${Panel} title="Void a match"><${Void} lobby=${lobby} /><//>
        <${Panel} title="Remove a bot"><${Remove} lobby=${lobby} /><//>
      </div>
    </div>
    <${Roster} />
    ${handedIn && html`<${handedIn.Submissions} />`}
    ${machines && html`<${machines.Hosts} />`}
    <${Log} />
  `;
}

/** A module that is only loaded where it is wanted. @param {boolean} isWanted @param {() => Promise<any>} load @returns {any} */
function useModule(isWanted, load) {
  const [module, setModule] = useState(null);
  useEffect(() => {
    if (isWanted) load().then((found) => setModule(() => found));
  }, [isWanted]);
  return module;
}

function Going({ lobby }) {
  const [word, say] = useWord();
  const [asked, ask] = useState(null);
  if (!lobby.competitions.length) {
    return html`<${Empty} title="None is on." text="Start one below: everybody who is connected and plays the game takes part." /><${Heard} word=${word} />`;
  }
  return html`<ul class="lines">
      ${lobby.competitions.map((competition) => {
        const heading = competitionTitle(competition);
        const paused = competition.state === "paused";
        return html`<li key=${competition.id} class="steer">
          <div>
            <p><a href=${href("c", competition.id)}><${Name} name=${heading.title} /></a> <${State} state=${competition.state} /> <span class="faint small">${heading.about.join(", ")}</span></p>
            ${competition.scheduled ? html`<${Progress} done=${competition.settled} all=${competition.scheduled} label=${`matches played in ${heading.title}`} />` : null}
            <p class="small faint">${competition.scheduled ? `${number(competition.settled)} of ${count(competition.scheduled, "match", "matches")}` : count(competition.settled, "match", "matches")}${competition.left_s ? `, about ${duration(competition.left_s)} left` : ""}</p>
            <${WaitsFor} competition=${competition} />
          </div>
          <span class="row">
            <button type="button" disabled=${word.busy} onClick=${() => say({ action: paused ? "resume" : "pause", competition: competition.id })}>${paused ? "Resume" : "Pause"}<span class="unseen"> ${heading.title}</span></button>
            <button type="button" class="danger" disabled=${word.busy} onClick=${() => ask(competition)}>Stop…<span class="unseen"> ${heading.title}</span></button>
          </span>
        </li>`;
      })}
    </ul>
    <${Heard} word=${word} />
    ${asked && html`<${Stop} competition=${asked} say=${say} onEnd=${() => ask(null)} />`}`;
}

/** The question before a competition is stopped; one that was over can be stopped in two ways. */
function Stop({ competition, say, onEnd }) {
  const stop = { action: "stop", competition: competition.id };
  const title = `Stop ${competitionTitle(competition).title}?`;
  const text = "It ends for good; what is being played now does not count. What has been played is kept.";
  if (!competition.reopened) return html`<${Ask} title=${title} text=${text} yes="Stop it" onYes=${() => say(stop)} onEnd=${onEnd} />`;
  return html`<${Ask} title=${title} text=${`${text} Results that were made void, and were not played again, count as before or stay void.`}
    yes="Stop it, they count" onYes=${() => say({ ...stop, unplayed: "before" })} also=${["Stop it, they stay void", () => say({ ...stop, unplayed: "void" })]} onEnd=${onEnd} />`;
}

function Void({ lobby }) {
  const [word, say] = useWord();
  const [match, setMatch] = useState("");
  const id = match.trim().replace(/^.*#\/m\/([^/]+).*$/, "$1");
  return html`<${Danger} verb="Void" title=${`Void match ${id}?`} text="It does not count. Except on a ladder it is played again with fresh cards." word=${word} onYes=${() => say({ action: "void", match: id })}>
    <label class="field">The match's id, or a link to it
      <input required value=${match} list="matches-now" spellcheck="false" autocomplete="off" onInput=${(event) => setMatch(event.target.value)} />
    </label>
    <datalist id="matches-now">
      ${[...lobby.matches.map((each) => [each.match, each]), ...lobby.latest.map((each) => [each.id, each])].map(([value, each]) => html`<option value=${value}>${each.players.join(" – ")}</option>`)}
    </datalist>
  <//>`;
}

function Remove({ lobby }) {
  const [word, say] = useWord();
  const [bot, setBot] = useState("");
  const [competition, setCompetition] = useState("");
  const { data: all } = useDocument(api("competitions"));
  const over = (all?.competitions ?? []).filter((each) => each.finished_at && each.form !== "elimination").slice(0, MOST_OVER);
  const remove = () => say({ action: "remove", bot: bot.trim(), ...(competition && { competition }) });
  return html`<${Danger} verb="Remove" title=${`Remove ${bot.trim()}?`} word=${word} onYes=${remove}
    text="It is out like an offender: its matches are struck from everyone's standings, and it cannot come back into that competition.">
    <div class="fields">
      <label class="field">Bot
        <input required value=${bot} list="bots-now" maxlength="64" spellcheck="false" autocomplete="off" onInput=${(event) => setBot(event.target.value)} />
      </label>
      <label class="field">From
        <select value=${competition} onChange=${(event) => setCompetition(event.target.value)}>
          <option value="">every competition it is in</option>
          ${lobby.competitions.map((each) => html`<option value=${each.id}>${competitionTitle(each).title}</option>`)}
          ${over.length > 0 && html`<optgroup label="that are over">${over.map((each) => html`<option value=${each.id}>${competitionTitle(each).title}, ${time(each.finished_at)}</option>`)}</optgroup>`}
        </select>
      </label>
    </div>
    <datalist id="bots-now">${lobby.bots.map((each) => html`<option value=${each.name}></option>`)}</datalist>
  <//>`;
}

/** A form for an action that cannot be undone, and a question before it. */
function Danger({ verb, title, text, word, onYes, children }) {
  const [asking, setAsking] = useState(false);
  const submit = (event) => {
    event.preventDefault();
    setAsking(true);
  };
  return html`<form class="stack" onSubmit=${submit}>
    ${children}
    <p><button class="danger" disabled=${word.busy}>${verb} it…</button></p>
    <${Heard} word=${word} />
    ${asking && html`<${Ask} title=${title} text=${text} yes=${`${verb} it`} onYes=${onYes} onEnd=${() => setAsking(false)} />`}
  </form>`;
}
