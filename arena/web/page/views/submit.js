// Hand a program in, see what becomes of it, and choose which version plays.

import { html, useEffect } from "../lib/preact.js";
import { useLobby, useToken } from "../api.js";
import { href } from "../route.js";
import { Empty, Failure, Figures, Loading, Page, Tabs, addStyles } from "../components.js";
import { count, list, time, title } from "../format.js";
import { Forms } from "./submit_form.js";
import { Log } from "./submit_log.js";
import { again, isDecided, useSubmissions } from "./submit_link.js";
import { Run, Unsafe, Upload, bytes } from "./submit_run.js";
import { Versions } from "./submit_versions.js";

addStyles(new URL("submit.css", import.meta.url));

/** @param {{route: import("../route.js").Route}} props */
export default function Submit({ route }) {
  const token = useToken();
  const { lobby } = useLobby();
  if (!lobby) return html`<${Page} title="Hand in"><${Loading} what="the arena" /><//>`;
  if (!lobby.arena.submissions) {
    return html`<${Page} title="Hand in">
      <${Empty} title="This arena takes no programs." text="Connect your bot from your own machine instead.">
        <p><a href="docs/bots/README.md#connecting-to-the-class">How to connect a bot</a></p>
      <//>
    <//>`;
  }
  if (!token) {
    return html`<${Page} title="Hand in">
      <${Empty} title="Log in first." text="Programs are handed in with the token that your instructor has given you: “Log in” at the top of the page takes it." />
    <//>`;
  }
  return html`<${Entered} route=${route} />`;
}

function Entered({ route }) {
  const { rules, entries, error, live } = useSubmissions();
  const heading = route.id ? `Submission ${route.id}` : route.tab ? "Your versions" : "Hand in";
  const above = rules?.owner === null ? { href: href("instructor"), title: "Instructor" } : { href: href("submit", "versions"), title: "Your versions" };
  return html`<${Page} title=${heading} crumbs=${route.id ? [above] : []}>${shown()}<//>`;

  function shown() {
    if (error) return html`<${Failure} error=${error} retry=${again} />`;
    if (!rules || !entries) return html`<${Loading} what="what was handed in" />`;
    return html`
      ${!live && html`<p class="heard bad" role="status">The connection is lost; trying again. What was handed in goes on without this page.</p>`}
      ${route.id ? html`<${Log} submission=${Number(route.id)} />` : rules.owner === null ? html`<${ForInstructors} />` : html`<${Own} route=${route} />`}
    `;
  }
}

function ForInstructors() {
  return html`<${Empty} title="You are logged in as an instructor." text="Programs are handed in with the token of somebody on the roster.">
    <p><a href=${href("instructor")}>See what the class has handed in</a></p>
  <//>`;
}

function Own({ route }) {
  const { rules, entries, inPlay, runs, upload } = useSubmissions();
  const tabs = [
    { href: href("submit"), title: "Hand in", is: !route.tab },
    { href: href("submit", "versions"), title: `Your versions (${entries.length})`, is: route.tab === "versions" },
  ];
  useDropsOnlyHere();
  const latest = [...runs.values()].sort((a, b) => b.submission - a.submission).filter((run, at) => (at === 0 && !route.tab) || !isDecided(run));
  return html`
    <${Tabs} items=${tabs} label="What to do" />
    <${Unsafe} text=${rules.unsafe} />
    ${!route.tab && html`<${Rules} rules=${rules} />`}
    ${upload && !(upload.submission && runs.has(upload.submission)) && html`<${Upload} upload=${upload} />`}
    ${latest.map((run) => html`<${Run} key=${run.submission} run=${run} isNew=${upload?.submission === run.submission} entry=${entries.find((one) => one.submission === run.submission)} />`)}
    ${route.tab ? html`<${Versions} entries=${entries} inPlay=${inPlay} owner=${rules.owner} />` : html`<${Forms} rules=${rules} busy=${Boolean(upload?.busy)} />`}
  `;
}

/** What may be handed in, and until when. */
function Rules({ rules }) {
  const { opens_at, closes_at, left_today, most_bytes, games, languages } = rules;
  const now = Date.now() / 1000;
  const here = languages.filter((one) => !one.missing);
  const missing = languages.filter((one) => one.missing);
  return html`<section class="panel" aria-label="What may be handed in">
    <${Figures} items=${[
      opens_at > now ? ["From", time(opens_at)] : null,
      [closes_at && closes_at < now ? "Closed since" : "Until", closes_at ? time(closes_at) : "no end"],
      left_today === null ? null : ["Left today", count(left_today, "version")],
      ["At most", bytes(most_bytes)],
    ]} />
    <dl class="evidence">
      <div><dt>Games</dt><dd>${games.length ? list(games.map(title), 99) : "none"}</dd></div>
      <div><dt>Installed here</dt><dd>${here.length ? html`<ul>${here.map((one) => html`<li>${one.version.startsWith(one.title) ? one.version : `${one.title}: ${one.version}`}</li>`)}</ul>` : "no language"}</dd></div>
    </dl>
    ${missing.length > 0 && html`<details><summary>Not installed here</summary><ul>${missing.map((one) => html`<li>${one.title}: ${one.missing}</li>`)}</ul></details>`}
    <p class="faint small">A program is built on the server without a network, so what else it needs lies in its own folder. It is then checked as <code>arena check</code> does, and plays twenty rounds of each of its games. If something fails, what was in play stays in play. <a href="docs/bots/README.md#hand-it-in">How to hand in</a></p>
  </section>`;
}

/** A file that is dropped beside its place would replace the page. */
function useDropsOnlyHere() {
  useEffect(() => {
    const hold = (event) => event.preventDefault();
    addEventListener("dragover", hold);
    addEventListener("drop", hold);
    return () => {
      removeEventListener("dragover", hold);
      removeEventListener("drop", hold);
    };
  }, []);
}
