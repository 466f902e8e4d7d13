// What the class has handed in, for an instructor: the queue, and for each submission its log, its program, and whether it may play.

import { html, useState } from "../lib/preact.js";
import { Empty, Failure, Loading, Name, Panel, addStyles, saveFile, useFew } from "../components.js";
import { number } from "../format.js";
import { Heard } from "./instructor_ask.js";
import { again, change, fetchProgram, isDecided, lookAt, useSubmissions } from "./submit_link.js";
import { Became, Unsafe, turnOf } from "./submit_run.js";
import { Entry } from "./submit_versions.js";

addStyles(new URL("submit.css", import.meta.url));

const FEW = 20;

/** Stands at the top of the instructor's page. */
export function Warning() {
  const { rules } = useSubmissions();
  return html`<${Unsafe} text=${rules?.unsafe} />`;
}

export function Submissions() {
  const { rules, entries, error } = useSubmissions();
  if (error) return html`<${Panel} title="Submissions"><${Failure} error=${error} retry=${again} /><//>`;
  if (!rules || !entries) return html`<${Panel} title="Submissions"><${Loading} what="what was handed in" /><//>`;
  return html`<${Panel} title="Submissions"><${All} entries=${entries} /><//>`;
}

function All({ entries }) {
  const [owner, setOwner] = useState("");
  const [word, setWord] = useState({});
  const [shown, rest] = useFew(entries, FEW, "submissions");
  const queue = entries.filter((entry) => !isDecided(entry)).sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
  const attempt = async (task, done) => {
    setWord({ busy: true });
    try {
      const text = await task;
      setWord({ done: { text: text || done } });
    } catch (error) {
      setWord({ error: error.message });
    }
  };
  const find = (event) => {
    event.preventDefault();
    lookAt(owner.trim());
  };
  const clear = () => {
    setOwner("");
    lookAt("");
  };
  const download = async ({ submission, owner: whose, version }) => {
    const blob = await fetchProgram(submission);
    const name = `${whose}-${version ? `v${version}` : submission}.zip`;
    saveFile(name, blob);
    return `Downloaded ${name}`;
  };
  return html`
    ${queue.length > 0 && html`<h3>The queue (${number(queue.length)})</h3>
      <ol class="lines">${queue.map((entry) => html`<li key=${entry.submission}><${Name} name=${entry.owner} look="short" /> <${Became} entry=${entry} /> <span class="faint small">${entry.name}${turnOf(entry) && `; ${turnOf(entry)}`}</span></li>`)}</ol>`}
    <form class="row find" onSubmit=${find}>
      <label class="field">Of whom
        <input value=${owner} list="owners" maxlength="64" placeholder="everybody" spellcheck="false" autocomplete="off" onInput=${(event) => setOwner(event.target.value)} />
      </label>
      <datalist id="owners">${[...new Set(entries.map((entry) => entry.owner))].sort().map((name) => html`<option value=${name}></option>`)}</datalist>
      <button>Show</button>
      <button type="button" onClick=${clear}>Everybody</button>
    </form>
    <${Heard} word=${word} />
    ${!entries.length && html`<${Empty} title="Nothing was handed in." text="Students hand in with their tokens, at “Hand in” or with arena submit." />`}
    <ul class="lines entries">
      ${shown.map((entry) => {
        const { submission, is_disabled } = entry;
        const what = html`<span class="unseen"> ${entry.name} of ${entry.owner}</span>`;
        return html`<li key=${submission}><${Entry} entry=${entry} withOwner>
          <button type="button" disabled=${word.busy} onClick=${() => attempt(download(entry), "")}>Download${what}</button>
          <button type="button" disabled=${word.busy || !isDecided(entry)} onClick=${() => attempt(change({ type: "rebuild", submission }), "It is built and checked again.")}>Rebuild${what}</button>
          ${is_disabled
            ? html`<button type="button" disabled=${word.busy} onClick=${() => attempt(change({ type: "disable", submission, again: true }), "It may play again.")}>Allow again${what}</button>`
            : html`<button type="button" class="danger" disabled=${word.busy} onClick=${() => attempt(change({ type: "disable", submission }), "It is out of play.")}>Disable${what}</button>`}
        <//></li>`;
      })}
    </ul>
    ${rest}`;
}
