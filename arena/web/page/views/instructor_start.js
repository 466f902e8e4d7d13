// How the instructor starts a competition: a run of the file, or a game in one of its forms, with its settings as fields.
// The arena says which forms and settings a game has (`/api/games.json`); nothing here knows a game.

import { html, useState } from "../lib/preact.js";
import { api, useDocument } from "../api.js";
import { Heard, useWord } from "./instructor_ask.js";
import { capital, count, formTitle, number, spaced, time, title } from "../format.js";

const MOST_MATCHES = 100_000;

/** @param {{lobby: any}} props */
export function Start({ lobby }) {
  const [word, say] = useWord();
  const [what, setWhat] = useState("");
  const { data: past } = useDocument(api("competitions"));
  const { data: startable } = useDocument(api("games"));
  const due = lobby.runs.map(({ run }) => run);
  const games = startable?.games ?? [];
  const again = [...new Set((past?.competitions ?? []).map(({ run }) => run))].filter((run) => !due.includes(run) && !games.some(({ name }) => name === run));
  const game = games.find(({ name }) => name === what);
  const ready = lobby.bots.filter((bot) => bot.state === "here" && bot.games.includes(what)).length;
  return html`<div class="stack">
    <label class="field">What
      <select required value=${what} onChange=${(event) => setWhat(event.target.value)}>
        <option value="">choose a run or a game</option>
        ${lobby.runs.length > 0 && html`<optgroup label="Runs that are planned">${lobby.runs.map((run) => html`<option value=${run.run}>${run.run}: ${title(run.game)}, ${formTitle(run.form)}${run.next_at ? `, next ${time(run.next_at)}` : ""}</option>`)}</optgroup>`}
        ${again.length > 0 && html`<optgroup label="Runs once more">${again.map((run) => html`<option value=${run}>${run}</option>`)}</optgroup>`}
        <optgroup label="A game, with whoever is connected">${games.map((each) => html`<option value=${each.name}>${each.title}</option>`)}</optgroup>
      </select>
    </label>
    ${game
      ? html`<${Chosen} key=${what} game=${game} ready=${ready} busy=${word.busy} onStart=${say} />`
      : html`<p class="row"><button type="button" class="main" disabled=${word.busy || !what} onClick=${() => say({ action: "start", competition: what })}>Start</button></p>`}
    <${Heard} word=${word} />
  </div>`;
}

/** A game's form, matches and settings. */
function Chosen({ game, ready, busy, onStart }) {
  const [form, setForm] = useState(game.forms[0]);
  const [matches, setMatches] = useState(null); // null: as usual
  const [texts, setTexts] = useState(() => textsOf(game.settings));
  const [pressed, setPressed] = useState(false);
  const faults = Object.fromEntries(game.settings.map((setting) => [setting.name, faultIn(setting, texts[setting.name])]));
  const played = { name: "matches", kind: "integer", default: form.matches, least: 1, most: MOST_MATCHES };
  const matchesText = matches ?? String(form.matches);
  const matchesFault = form.matches === null ? "" : faultIn(played, matchesText);
  const submit = (event) => {
    event.preventDefault();
    setPressed(true);
    if (matchesFault || Object.values(faults).some(Boolean)) {
      const first = event.currentTarget;
      return void requestAnimationFrame(() => first.querySelector("[aria-invalid=true]")?.focus());
    }
    const message = { action: "start", competition: game.name, form: form.form };
    if (form.matches !== null && Number(matchesText) !== form.matches) message.matches = Number(matchesText);
    const usual = textsOf(game.settings);
    const isUsual = game.settings.every(({ name }) => texts[name] === usual[name]);
    if (!isUsual) message.settings = Object.fromEntries(game.settings.filter(({ name }) => texts[name] !== "").map((setting) => [setting.name, valueOf(setting, texts[setting.name])]));
    return void onStart(message);
  };
  return html`<form class="stack" novalidate onSubmit=${submit}>
    <div class="fields">
      <label class="field">Form
        <select value=${form.form} onChange=${(event) => setForm(game.forms.find((each) => each.form === event.target.value))}>
          ${game.forms.map((each) => html`<option value=${each.form}>${formTitle(each.form)}</option>`)}
        </select>
      </label>
      ${form.matches !== null && html`<${Field} setting=${played} label=${form.form === "league" ? "Matches of each bot" : "Matches of each two"} text=${matchesText} fault=${matchesFault} onText=${setMatches} />`}
    </div>
    <fieldset class="fields settings">
      <legend>Settings</legend>
      ${game.settings.map(
        (setting) => html`<${Field} key=${setting.name} setting=${setting} label=${spaced(setting.name)} text=${texts[setting.name]} fault=${faults[setting.name]}
          onText=${(text) => setTexts({ ...texts, [setting.name]: text })} />`,
      )}
    </fieldset>
    <p class="small faint">${count(ready, "bot")} here that ${ready === 1 ? "plays" : "play"} it.</p>
    <p class="row"><button class="main" disabled=${busy}>Start</button>${pressed && (matchesFault || Object.values(faults).some(Boolean)) ? html`<span class="bad" role="alert">One of the fields is not right yet.</span>` : null}</p>
  </form>`;
}

/** One value, with what it is and what is wrong with it. */
function Field({ setting, label, text, fault, onText }) {
  const id = `start-${setting.name}`;
  const { kind, least, most, choices, optional, about } = setting;
  const own = { id, "aria-describedby": `${id}-about`, "aria-invalid": fault ? "true" : null, value: text };
  const choose = (options) => html`<select ...${own} onChange=${(event) => onText(event.target.value)}>
    ${optional && html`<option value="">as usual</option>`}
    ${options.map(([value, name]) => html`<option value=${value}>${name}</option>`)}
  </select>`;
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${kind === "switch"
      ? choose([["false", "no"], ["true", "yes"]])
      : kind === "choice"
        ? choose(choices.map((choice) => [String(choice), String(choice)]))
        : html`<input ...${own} type="number" inputmode="numeric" step="1" min=${least} max=${most} placeholder=${optional ? "as usual" : null}
            onInput=${(event) => onText(event.target.validity.badInput ? "?" : event.target.value)} />`}
    <span class="small about" id=${`${id}-about`}>${fault ? html`<span class="bad">${fault}</span>` : about ? capital(about.replaceAll("`", "")) : bounds(setting)}</span>
  </div>`;
}

function bounds({ least, most }) {
  return `${number(least)} to ${number(most)}`;
}

function textsOf(settings) {
  return Object.fromEntries(settings.map((setting) => [setting.name, setting.default === null ? "" : String(setting.default)]));
}

/** What is wrong with a field's text, in one line; "" if nothing is. */
function faultIn(setting, text) {
  if (text === "" && setting.optional) return "";
  if (setting.kind !== "integer") return "";
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= setting.least && value <= setting.most) return "";
  return `Expected a whole number from ${bounds(setting)}, got ${text.trim() === "" ? "nothing" : text === "?" ? "something else" : text}`;
}

function valueOf({ kind, choices }, text) {
  if (kind === "integer") return Number(text);
  if (kind === "switch") return text === "true";
  return choices.find((choice) => String(choice) === text);
}
