// What became of one submission: the verdict, what the build wrote, the steps of the check, and stderr of the latest matches.

import { html, useEffect, useState } from "../lib/preact.js";
import { Empty, Failure, Figures, Loading, Panel } from "../components.js";
import { href } from "../route.js";
import { list, time, title } from "../format.js";
import { fetchLog, follow, isDecided, useSubmissions } from "./submit_link.js";
import { Became, Run, bytes } from "./submit_run.js";

/** @param {{submission: number}} props */
export function Log({ submission }) {
  const { entries, rules, runs, live } = useSubmissions();
  const entry = entries.find((one) => one.submission === submission);
  const run = runs.get(submission);
  const decided = entry ? isDecided(entry) : false;
  useEffect(() => {
    if (entry && !decided && live) follow(submission);
  }, [decided, live]);
  if (!entry) return html`<${Empty} title="There is no such submission." text="It may be somebody else's, or have been removed to make room for later ones." />`;
  return html`
    <${Panel} title=${entry.name} side=${html`<${Became} entry=${entry} />`}>
      ${entry.message && html`<p><q>${entry.message}</q></p>`}
      ${decided && entry.text && html`<p class=${`heard said ${entry.state === "accepted" ? "good" : "bad"}`}>${entry.text}</p>`}
      <${Figures} items=${[
        rules.owner === null && ["Owner", html`<bdi>${entry.owner}</bdi>`],
        ["Arrived", time(entry.arrived_at)],
        decided && ["Decided", time(entry.decided_at)],
        entry.language && ["Language", entry.language],
        ["Size", bytes(entry.bytes)],
      ]} />
      ${entry.games.length > 0 && html`<p>It plays ${list(entry.games.map(title), 9)}${entry.in_play.length > 0 ? `, and is in play in ${list(entry.in_play.map(title), 9)}` : "; it is not in play"}.</p>`}
      <p class="faint small">SHA-256 <code>${entry.program}</code></p>
    <//>
    ${run && !decided && html`<${Run} run=${run} entry=${entry} />`}
    <${Texts} key=${decided} submission=${submission} />
  `;
}

function Texts({ submission }) {
  const [log, setLog] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(null);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let gone = false;
    setError(null);
    fetchLog(submission).then((found) => gone || setLog(found), (failure) => gone || setError(failure));
    return () => (gone = true);
  }, [tries]);
  if (error) return html`<${Failure} error=${error} retry=${() => setTries(tries + 1)} />`;
  if (!log) return html`<${Loading} what="the log" />`;
  const written = log.stderr.filter(({ text }) => text.trim());
  return html`
    <${Panel} title="Check"><${Text} text=${log.check} label="the check" none="It has not been checked." /><//>
    <${Panel} title="Build"><${Text} text=${log.build} label="the build" none="The build wrote nothing." /><//>
    <${Panel} title="Standard error in matches" side=${html`<button type="button" onClick=${() => setTries(tries + 1)}>Look again</button>`}>
      ${written.length === 0 && html`<p class="faint">Nothing was written to standard error in the latest matches.</p>`}
      ${written.map(({ match, at, version, text }, index) => html`<details class="stderr" key=${match} open=${index === 0}>
        <summary>v${version}, ${time(at)}, match ${match}</summary>
        <p><a class="button" href=${href("m", match)}>Go to the match</a></p>
        <${Text} text=${text} label=${`standard error in match ${match}`} none="" />
      </details>`)}
    <//>`;
}

function Text({ text, label, none }) {
  return text.trim() ? html`<pre class="log" tabindex="0" role="region" aria-label=${label}>${text}</pre>` : html`<p class="faint">${none}</p>`;
}
