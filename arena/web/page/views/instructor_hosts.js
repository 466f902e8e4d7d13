// The machines that run bots for the arena, for an instructor: what each does, and which bots were lost with one; one can be drained.

import { html, useEffect, useState } from "../lib/preact.js";
import { instruct } from "../api.js";
import { Empty, Failure, Loading, Name, Panel, State, useFew } from "../components.js";
import { count, number } from "../format.js";
import { Heard, useWord } from "./instructor_ask.js";

const LOOK_MS = 3000;
const FEW = 10;
const LOOKS = { idle: "here", working: "running", draining: "paused", silent: "lost", unfit: "offence" };

export function Hosts() {
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(null);
  const [word, say] = useWord();
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const look = async () => {
      try {
        const done = document.hidden ? null : await instruct({ action: "hosts" });
        if (gone) return;
        if (done) setSeen({ hosts: done.hosts, lost: done.lost });
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
  const steer = async (host, isDraining) => {
    const done = await say({ action: isDraining ? "undrain" : "drain", host });
    if (done) setSeen((before) => ({ ...before, hosts: done.hosts }));
  };
  return html`<${Panel} title="Hosts">
    ${error && html`<${Failure} error=${error} />`}
    ${seen ? html`<${Listed} hosts=${seen.hosts} busy=${word.busy} onSteer=${steer} />` : !error && html`<${Loading} what="the hosts" />`}
    <${Heard} word=${word} />
    ${seen?.lost.length > 0 && html`<${Lost} lost=${seen.lost} />`}
  <//>`;
}

function Listed({ hosts, busy, onSteer }) {
  if (!hosts.length) return html`<${Empty} title="None is here." text="All bots run at the arena itself. Start arena host on another machine." />`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Hosts">
    <table class="grid">
      <thead><tr>
        <th scope="col">Host</th><th scope="col">State</th><th scope="col" class="number" title="of this arena, of all that it has">Bots</th><th scope="col" class="number" title="for more bots">Room</th>
        <th scope="col" class="number">Cores</th><th scope="col" class="number">Memory</th><th scope="col" class="number" title="how late it has been lately">Lag</th><th scope="col">Languages</th><th scope="col">Latest fault</th><td></td>
      </tr></thead>
      <tbody>${hosts.map((host) => html`<tr key=${host.host}>
        <th scope="row"><${Name} name=${host.host} />${!host.isolation && html`<span class="faint small"> bots are not isolated</span>`}</th>
        <td><${State} state=${LOOKS[host.state]}>${host.state}<//></td>
        <td class="number">${number(host.own_bots)} of ${number(host.bots)}</td>
        <td class="number">${number(host.room)}</td>
        <td class="number">${number(host.cores)}</td>
        <td class="number">${number(host.memory_mib)} MiB</td>
        <td class="number">${number(host.lag_ms, 1)} ms</td>
        <td class="small">${host.languages.join(", ") || "–"}</td>
        <td class="small">${host.why || "–"}</td>
        <td>${["idle", "working", "draining"].includes(host.state) && html`<${Drain} host=${host} busy=${busy} onSteer=${onSteer} />`}</td>
      </tr>`)}</tbody>
    </table>
  </div>`;
}

function Drain({ host: { host, state }, busy, onSteer }) {
  const isDraining = state === "draining";
  return html`<button type="button" disabled=${busy} aria-label=${`${isDraining ? "Resume" : "Drain"} ${host}`} title=${isDraining ? "it takes bots again" : "matches of its bots go on, and it takes no more bots"}
    onClick=${() => onSteer(host, isDraining)}>${isDraining ? "Resume" : "Drain"}</button>`;
}

/** Bots that were there when a host was lost, with what would be usual; nothing is ruled by that. */
function Lost({ lost }) {
  const [shown, rest] = useFew(lost, FEW, "bots");
  return html`<h3>Lost with a host</h3>
    <ul class="lines">${shown.map((each) => html`<li key=${each.bot}>
      <${Name} name=${each.bot} look="short" /><span class="faint small"> ${number(each.lost)} of ${count(each.of, "start")}; at the rate of the others it were ${number(each.expected, 1)}</span>
    </li>`)}</ul>
    ${rest}`;
}
