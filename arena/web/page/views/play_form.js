// What a person chooses before sitting down: the game, the opponents, a name, how long.

import { html, useEffect, useState } from "../lib/preact.js";
import { token, useLobby } from "../api.js";
import { load, save } from "../storage.js";
import { Empty, Loading, Page } from "../components.js";
import { href, stay } from "../route.js";
import { GAMES } from "../games/games.js";
import { title } from "../format.js";
import { ownChairs } from "./play_chair.js";

const NAME = "arena.name"; // the key in the storage
const DEFAULT_NAME = "Guest";
const NAME_LETTERS = 64;

/** @param {{game?: string, refused?: string, onSit: (request: import("./play_chair.js").Request) => void}} props */
export function Form({ game, refused, onSit }) {
  const { lobby } = useLobby();
  const [chosen, setChosen] = useState(game);
  useEffect(() => setChosen(game), [game]);
  if (!lobby) return html`<${Page} title="Sit down and play"><${Loading} what="who is here" /><//>`;
  const { games } = lobby.arena;
  const own = ownChairs();
  if (!games.length) {
    return html`<${Page} title="Sit down and play">
      <${Empty} title="No game is played here." text="The arena was started without any." />
    <//>`;
  }
  const played = games.find((one) => one.name === chosen) ?? games[0];
  const choose = (name) => {
    setChosen(name);
    stay("play", name);
  };
  return html`<${Page} title="Sit down and play" lead="You play as any bot does, with a clock for people: ten minutes for a decision, and an hour in the bank.">
    <fieldset class="games">
      <legend>Game</legend>
      ${games.map(
        (one) => html`<label class=${one.name === played.name ? "game chosen" : "game"}>
          <input type="radio" name="game" value=${one.name} checked=${one.name === played.name} onChange=${() => choose(one.name)} />
          <b>${one.title}</b> <span>${GAMES[one.name]?.about}</span>
        </label>`,
      )}
    </fieldset>
    ${own.length > 0 &&
    html`<p>You sit at ${own.length === 1 ? "a table" : "tables"} already: ${own.map((one, at) => html`${at > 0 && ", "}<a href=${href("m", one.match)}>${title(one.request.game)}</a>`)}</p>`}
    <${Chairs} key=${played.name} game=${played} lobby=${lobby} refused=${refused} onSit=${onSit} />
  <//>`;
}

function Chairs({ game, lobby, refused, onSit }) {
  const { choices: fields, summary } = GAMES[game.name] ?? { choices: [], summary: "" };
  const opponents = choices(game, lobby.bots);
  const [name, setName] = useState(() => load(NAME) || DEFAULT_NAME);
  const [word, setWord] = useState("");
  const [settings, setSettings] = useState(() => Object.fromEntries(fields.map(({ setting, first }) => [setting, first])));
  const [against, setAgainst] = useState(() => firstChoice(game, opponents));

  const submit = (event) => {
    event.preventDefault();
    save(NAME, name.trim());
    const secret = token() || word.trim();
    onSit({ game: game.name, name: name.trim(), against, settings, ...(secret ? { token: secret } : {}) });
  };
  const needsToken = lobby.arena.requires_token && !token();
  const nobody = game.seats > 1 && !opponents.length;
  return html`<form class="sit panel" onSubmit=${submit}>
    ${refused && html`<p class="failure" role="alert">${refused}</p>`}
    <div class="fields">
      <label>Your name <input name="name" required maxlength=${NAME_LETTERS} autocomplete="nickname" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
      ${against.map(
        (value, at) => html`<label>${game.seats > 2 ? `Opponent ${at + 1}` : "Opponent"}
          <select value=${value} onChange=${(event) => setAgainst(against.with(at, event.target.value))}>
            <${Options} choices=${opponents} />
          </select>
        </label>`,
      )}
      ${fields.map(
        ({ setting, label, least, most }) => html`<label>${label}
          <input type="number" required min=${least} max=${most} step="1" inputmode="numeric" value=${settings[setting]}
            onInput=${(event) => setSettings({ ...settings, [setting]: event.target.valueAsNumber })} />
        </label>`,
      )}
      ${needsToken &&
      html`<label>Your token <input type="password" required autocomplete="off" value=${word} onInput=${(event) => setWord(event.target.value)} /></label>`}
    </div>
    <p class="note">${summary}${game.seats === 1 && " You play alone."}</p>
    ${nobody && html`<p class="note">Nobody is here to play with: no house bot, and no bot with a free chair. <a href=${href()}>See who is connected</a></p>`}
    <p class="do"><button class="main" disabled=${nobody}>Sit down</button></p>
  </form>`;
}

function Options({ choices: all }) {
  return ["House bots", "Connected bots"].map((label, at) => {
    const those = all.filter((one) => one.isHouse === (at === 0));
    return (
      those.length > 0 &&
      html`<optgroup label=${label}>
        ${those.map((one) => html`<option value=${one.value}>${one.text}</option>`)}
      </optgroup>`
    );
  });
}

/** Whom one can play: the house bots of the game, and who is connected, plays it and has a free chair. */
function choices(game, bots) {
  const house = game.house.map((name) => ({ value: `house:${name}`, text: name, isHouse: true }));
  const here = bots
    .filter((bot) => bot.state === "here" && !bot.launched && bot.games.includes(game.name) && bot.playing < bot.tables)
    .map((bot) => ({ value: bot.name, text: bot.name, isHouse: false }));
  return [...house, ...here];
}

// Different ones round a table, as far as there are any.
function firstChoice(game, opponents) {
  const others = Math.max(0, game.seats - 1);
  if (!opponents.length) return [];
  return Array.from({ length: others }, (_, at) => opponents[at % opponents.length].value);
}
