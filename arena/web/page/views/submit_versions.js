// What one has handed in: which version plays which game, and going back to an earlier one.

import { html, useState } from "../lib/preact.js";
import { href } from "../route.js";
import { Empty, Name, Panel, useFew } from "../components.js";
import { list, time, title } from "../format.js";
import { Heard } from "./instructor_ask.js";
import { change } from "./submit_link.js";
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
    <${Panel} title="In play"><${InPlay} inPlay=${inPlay.filter((one) => one.owner === owner)} /><//>
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
