// What one has handed in: which version plays which game, going back to an earlier one, and two versions compared.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { href } from "../route.js";
import { Empty, Name, Panel, useFew } from "../components.js";
import { list, time, title } from "../format.js";
import { Heard } from "./instructor_ask.js";
import { change, request } from "./submit_link.js";
import { Became, bytes, turnOf } from "./submit_run.js";

const FEW = 20;

/** @param {{entries: any[], inPlay: any[], owner: string}} props */
export function Versions({ entries, inPlay, owner }) {
  const [word, setWord] = useState({});
  const [shown, rest] = useFew(entries, FEW, "submissions");
  const use = async (version, game) => {
    setWord({ busy: true });
    try {
      const text = await change({ type: "use", version, game });
      setWord({ done: { text: text || `v${version} plays ${title(game)} now.` } });
    } catch (error) {
      setWord({ error: error.message });
    }
  };
  if (!entries.length) return html`<${Empty} title="You have handed in nothing yet."><p><a href=${href("submit")}>Hand in a program</a></p><//>`;
  return html`
    <div class="columns two">
      <${Panel} title="In play"><${InPlay} inPlay=${inPlay.filter((one) => one.owner === owner)} /><//>
      <${Panel} title="Which of two is better?"><${Comparison} entries=${entries} /><//>
    </div>
    <${Panel} title="All of them">
      <${Heard} word=${word} />
      <ul class="lines entries">
        ${shown.map((entry) => html`<li key=${entry.submission}><${Entry} entry=${entry}>
          ${entry.version && !entry.is_disabled && entry.games.filter((game) => !entry.in_play.includes(game)).map((game) => html`<button type="button" disabled=${word.busy} onClick=${() => use(entry.version, game)}>
            Use <span class="unseen">v${entry.version} </span>in ${title(game)}
          </button>`)}
        <//></li>`)}
      </ul>
      ${rest}
    <//>`;
}

function InPlay({ inPlay }) {
  if (!inPlay.length) return html`<p class="faint">None of your versions. What is accepted is in play at once.</p>`;
  return html`<ul class="lines">
    ${inPlay.map(({ game, version, at, who }) => html`<li key=${game}><b>${title(game)}</b>: v${version} <span class="faint small">since ${time(at)}, by <bdi>${who}</bdi></span></li>`)}
  </ul>`;
}

/** One submission in a list; `children` are what can be done with it. */
export function Entry({ entry, withOwner = false, children }) {
  const { submission, owner, name, message, language, arrived_at, in_play, text, version, state } = entry;
  const about = [time(arrived_at), language, bytes(entry.bytes)].filter(Boolean).join(", ");
  return html`<div class="entry">
    <div>
      <p>${withOwner && html`<${Name} name=${owner} look="short" /> `}<${Became} entry=${entry} /> <span class="file">${name}</span>${message && html` <q>${message}</q>`}</p>
      <p class="faint small">${about}${turnOf(entry) && `; ${turnOf(entry)}`}</p>
      ${in_play.length > 0 && html`<p class="small good">In play in ${list(in_play.map(title), 9)}</p>`}
      ${state === "refused" && text && html`<p class="small said">${text}</p>`}
    </div>
    <div class="row">
      <a class="button" href=${href("submit", submission)}>Log<span class="unseen"> of ${version ? `v${version}` : name}${withOwner ? ` of ${owner}` : ""}</span></a>
      ${children}
    </div>
  </div>`;
}

function Comparison({ entries }) {
  const versions = entries.filter((entry) => entry.version);
  const games = [...new Set(versions.flatMap((entry) => entry.games))].filter((game) => versions.filter((entry) => entry.games.includes(game)).length > 1);
  const [game, setGame] = useState(games[0]);
  const [chosen, setChosen] = useState([0, 0]);
  const [said, setSaid] = useState(/** @type {any} */ ({}));
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  if (!games.length) return html`<p class="faint">As soon as two versions of yours play the same game, they can be compared here.</p>`;

  const playing = versions.filter((entry) => entry.games.includes(game)).map((entry) => entry.version);
  const [first, second] = [playing.includes(chosen[0]) ? chosen[0] : playing[0], playing.includes(chosen[1]) ? chosen[1] : playing[1]];
  const compare = async (event) => {
    event.preventDefault();
    setSaid({ busy: true, text: "" });
    const { signal } = stop.current;
    try {
      await request({ type: "compare", game, first, second }, ({ type, text, is_over, position }) => {
        if (type !== "comparing" || signal.aborted) return undefined;
        setSaid({ busy: !is_over, text, position });
        return is_over || undefined;
      }, signal);
    } catch (error) {
      if (!signal.aborted) setSaid({ error: error.message });
    }
  };
  const choice = (label, value, onChange) => html`<label class="field">${label}
    <select value=${String(value)} onChange=${(event) => onChange(Number(event.target.value))}>${playing.map((version) => html`<option value=${String(version)}>v${version}</option>`)}</select>
  </label>`;
  return html`<form class="stack" onSubmit=${compare}>
    <div class="fields">
      <label class="field">Game
        <select value=${game} onChange=${(event) => setGame(event.target.value)}>${games.map((name) => html`<option value=${name}>${title(name)}</option>`)}</select>
      </label>
      ${choice("First", first, (version) => setChosen([version, second]))}
      ${choice("Second", second, (version) => setChosen([first, version]))}
    </div>
    <p><button class="main" disabled=${said.busy || first === second}>Compare</button></p>
    <div role="status">
      ${said.busy && html`<p class="faint">${said.position ? `Number ${said.position} in the queue.` : "They play when nothing else does…"} Leaving “Your versions” ends it.</p>`}
      ${said.text && html`<p class="heard said">${said.text}</p>`}
      ${said.error && html`<p class="heard bad">${said.error}</p>`}
    </div>
  </form>`;
}
