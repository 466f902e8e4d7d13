// The machines that play matches for the arena, for an instructor: what each does, and what was lost; one can be drained.

import { html, useEffect, useState } from "../lib/preact.js";
import { instruct } from "../api.js";
import { Empty, Failure, Loading, MatchLink, Name, Panel, State, useFew } from "../components.js";
import { ago, number, time } from "../format.js";
import { Heard, useWord } from "./instructor_ask.js";

const LOOK_MS = 3000;
const FEW = 10;
const LOOKS = { idle: "here", working: "running", draining: "paused", silent: "lost", refused: "offence" };

export function Workers() {
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(null);
  const [word, say] = useWord();
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const look = async () => {
      try {
        const done = document.hidden ? null : await instruct({ action: "workers" });
        if (gone) return;
        if (done) setSeen({ workers: done.workers, lost: done.lost });
        setError(null);
      } catch (failure) {
        if (!gone) setError(failure);
      }
      if (!gone) timer = setTimeout(look, LOOK_MS);
    };
    look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, []);
  const steer = async (worker, isDraining) => {
    const done = await say({ action: isDraining ? "undrain" : "drain", worker });
    if (done) setSeen((before) => ({ ...before, workers: done.workers }));
  };
  return html`<${Panel} title="Workers">
    ${error && html`<${Failure} error=${error} />`}
    ${seen ? html`<${Listed} workers=${seen.workers} busy=${word.busy} onSteer=${steer} />` : !error && html`<${Loading} what="the workers" />`}
    <${Heard} word=${word} />
    ${seen?.lost.length > 0 && html`<${Lost} lost=${seen.lost} />`}
  <//>`;
}

function Listed({ workers, busy, onSteer }) {
  if (!workers.length) return html`<${Empty} title="None is here." text="Matches are played by the arena itself. Start arena worker on another machine." />`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Workers">
    <table class="grid">
      <thead><tr>
        <th scope="col">Worker</th><th scope="col">State</th><th scope="col" class="number">Matches</th><th scope="col" class="number">Played</th><th scope="col" class="number">Cores</th>
        <th scope="col" class="number" title="calibrations a second of one core, measured while idle">Speed</th><th scope="col">Latest fault</th><td></td>
      </tr></thead>
      <tbody>${workers.map((worker) => html`<tr key=${worker.name}>
        <th scope="row"><${Name} name=${worker.name} /><span class="faint small"> ${worker.system}${worker.isolation ? "" : ", bots are not isolated"}</span></th>
        <td><${State} state=${LOOKS[worker.state]}>${worker.state}<//>${worker.state === "silent" && html`<span class="faint small"> for ${number(worker.seen_s)} s</span>`}</td>
        <td class="number">${number(worker.running)} of ${number(worker.slots)}</td>
        <td class="number">${number(worker.played)}</td>
        <td class="number">${number(worker.cores)}</td>
        <td class="number">${number(worker.speed, 1)}</td>
        <td class="small">${worker.why || worker.last_error || "–"}</td>
        <td>${["idle", "working", "draining"].includes(worker.state) && html`<${Drain} worker=${worker} busy=${busy} onSteer=${onSteer} />`}</td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

function Drain({ worker: { name, state }, busy, onSteer }) {
  const isDraining = state === "draining";
  return html`<button type="button" disabled=${busy} aria-label=${`${isDraining ? "Resume" : "Drain"} ${name}`} title=${isDraining ? "it takes matches again" : "it plays what it has begun, and takes no more"}
    onClick=${() => onSteer(name, isDraining)}>${isDraining ? "Resume" : "Drain"}</button>`;
}

/** Matches that a worker began and that do not count: J5's voids. */
function Lost({ lost }) {
  const [shown, rest] = useFew(lost, FEW, "matches");
  return html`<h3>Begun by a worker, without a result</h3>
    <ul class="lines">${shown.map((each) => html`<li key=${each.match}>
      ${each.players.map((name, seat) => html`${seat > 0 && ", "}<${Name} name=${name} look="short" />`)}
      <span class="faint small"> ${each.state === "void" ? html`<${MatchLink} match=${each.match}>void<//>` : each.state} on ${each.worker}${each.why && `: ${each.why}`}; begun <span title=${time(each.at)}>${ago(each.at)}</span></span>
    </li>`)}</ul>
    ${rest}`;
}
