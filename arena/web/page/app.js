// The page's frame: its header with links to the views, the view that the address names, and failures.
// Views are fetched when they are first shown.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./lib/preact.js";
import { useLobby } from "./api.js";
import { Login, useMe } from "./login.js";
import { href, useRoute } from "./route.js";
import { Empty, Loading, Page } from "./components.js";

const VIEWS = {
  lobby: () => import("./views/lobby.js"),
  competitions: () => import("./views/competitions.js"),
  competition: () => import("./views/competition.js"),
  bot: () => import("./views/bot.js"),
  pairing: () => import("./views/pairing.js"),
  match: () => import("./views/match.js"),
  play: () => import("./views/play.js"),
  submit: () => import("./views/submit.js"),
  instructor: () => import("./views/instructor.js"),
};
const WAYS = [
  { title: "Lobby", href: href(), views: ["lobby"] },
  { title: "Competitions", href: href("competitions"), views: ["competitions", "competition", "bot", "pairing"] },
  { title: "Play", href: href("play"), views: ["play"] },
  { title: "Hand in", href: href("submit"), views: ["submit"], isFor: handsIn },
  { title: "Instructor", href: href("instructor"), views: ["instructor"], isFor: (me, arena) => !handsIn(me, arena) },
  { title: "Docs", href: "docs/", views: [] },
];

/** Whether somebody hands programs in here; a phone has room for that or for the instructor's page. */
function handsIn(me, arena) {
  return me?.kind === "owner" && Boolean(arena?.submissions);
}

function App() {
  const route = useRoute();
  const me = useMe();
  const key = JSON.stringify([route.view, route.id, route.name, route.a, route.b]);
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <header class="bar">
      <a class="brand" href=${href()} aria-label="arena"><span aria-hidden="true">♠</span><b>arena</b></a>
      <${Ways} me=${me} view=${route.view} />
      <${Line} />
      <${Login} me=${me} />
    </header>
    <main id="main" tabindex="-1">
      <${View} key=${key} route=${route} />
    </main>
  `;
}

function Ways({ me, view }) {
  const { lobby } = useLobby();
  const ways = WAYS.filter(({ isFor }) => !isFor || isFor(me, lobby?.arena));
  return html`<nav aria-label="Views">
    ${ways.map((way) => html`<a href=${way.href} aria-current=${way.views.includes(view) ? "page" : null}>${way.title}</a>`)}
  </nav>`;
}

// The address belongs to the routes, so that a link to `#main` would leave the view.
function toMain(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Line() {
  const { lobby, live } = useLobby();
  const [patient, setPatient] = useState(true);
  useEffect(() => {
    setPatient(true);
    const timer = setTimeout(() => setPatient(false), 1500);
    return () => clearTimeout(timer);
  }, [live]);
  return html`<p class="line" role="status">${said()}</p>`;

  function said() {
    if (!live) return patient ? "" : html`<span class="state lost">no connection: trying again</span>`;
    if (lobby?.arena.unwritten) return html`<span class="state lost">results wait for the disk</span>`;
    return lobby ? html`<span class="state live" title="what you see is live">live</span>` : "";
  }
}

let hasOpened = false; // the first view
const AWAY_MS = 2000; // between two looks whether the arena is back
const JUST_MS = 20000; // a page is new for so long

/** The view that the address names, or why there is none. */
function View({ route }) {
  const [module, setModule] = useState(null);
  const [unloaded, setUnloaded] = useState(false);
  const [failure] = useErrorBoundary((error) => console.error(error));
  const box = useRef(null);
  useEffect(() => {
    let gone = false;
    const load = () => VIEWS[route.view]?.().then((found) => gone || (setUnloaded(false), setModule(() => found.default)), failed);
    const failed = async () => {
      if (gone) return;
      setUnloaded(true);
      if (await comesBack(() => gone)) location.reload(); // browsers do not fetch a module again that they could not get
    };
    load();
    return () => (gone = true);
  }, []);
  // A new view begins at its top, and a screen reader at its heading; not when the page has just been opened.
  useEffect(() => {
    if (!module || !hasOpened) return void (hasOpened = Boolean(module));
    scrollTo(0, 0);
    box.current?.querySelector("h1")?.focus({ preventScroll: true });
  }, [module]);
  return html`<div ref=${box}>${shown()}</div>`;

  function shown() {
    if (!VIEWS[route.view]) return html`<${Lost} />`;
    if (failure) return html`<${Broken} text="This view has met a fault of its own. What it shows is safe with the arena." />`;
    if (unloaded) return html`<${Broken} text="A part of the page could not be fetched: the network was cut, the arena is away, or it has another version now. As soon as it is back, so is this view." />`;
    const Shown = module;
    return Shown ? html`<${Shown} route=${route} />` : html`<${Loading} />`;
  }
}

/** Wait until the arena answers; false if nobody waits any more, or the page was just loaded again and it does answer. */
async function comesBack(isOff) {
  const page = new URL("../../", import.meta.url);
  const answers = () => fetch(page, { cache: "no-store" }).then((response) => response.ok, () => false);
  const [{ type }] = /** @type {any} */ (performance.getEntriesByType("navigation"));
  if (type === "reload" && performance.now() < JUST_MS && (await answers())) return false;
  do await new Promise((done) => setTimeout(done, AWAY_MS));
  while (!isOff() && !(await answers()));
  return !isOff();
}

function Lost() {
  return html`<${Page} title="Nothing here">
    <${Empty} title="This address leads to no view." text="It may have been cut when it was copied.">
      <p><a href=${href()}>Go to the lobby</a></p>
    <//>
  <//>`;
}

function Broken({ text }) {
  return html`<${Page} title="That did not work">
    <${Empty} title=${text}>
      <p><button type="button" onClick=${() => location.reload()}>Load the page again</button></p>
    <//>
  <//>`;
}

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
