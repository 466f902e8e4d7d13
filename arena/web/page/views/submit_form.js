// Two ways to hand a program in: a file or a zip of this device, or a starter that is changed in the page.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { load, save } from "../storage.js";
import { Failure, Loading, Panel } from "../components.js";
import { title } from "../format.js";
import { Ask } from "./instructor_ask.js";
import { handIn, request } from "./submit_link.js";
import { bytes } from "./submit_run.js";
import { zipOf } from "./submit_zip.js";

const MESSAGE_LETTERS = 200;
const CHOICE = "arena.starter"; // the key of the latest game and language
const FOLDER = "A folder cannot be sent as it is. Make a zip of it first (“Compress” in its menu), and take that; or run “arena submit” with the folder in a terminal.";

/** @param {{rules: any, busy: boolean}} props */
export function Forms({ rules, busy }) {
  const isFull = rules.left_today === 0;
  return html`<div class="columns two">
    <${Panel} title="A file or a zip"><${File} most=${rules.most_bytes} busy=${busy} /><//>
    <${Panel} title="A starter, changed here"><${Starter} rules=${rules} busy=${busy} /><//>
  </div>
  ${isFull && html`<p class="faint">You have handed in as many versions as a day allows. Tomorrow there are more.</p>`}`;
}

function Message({ text, onText }) {
  return html`<label class="field">What is new (only you and your instructor see it)
    <input value=${text} maxlength=${MESSAGE_LETTERS} autocomplete="off" onInput=${(event) => onText(event.target.value)} />
  </label>`;
}

function File({ most, busy }) {
  const [files, setFiles] = useState(/** @type {globalThis.File[]} */ ([]));
  const [fault, setFault] = useState("");
  const [message, setMessage] = useState("");
  const [isOver, setOver] = useState(false);
  const input = useRef(null);
  const take = (some) => {
    setFiles(some);
    const size = some.reduce((sum, file) => sum + file.size, 0);
    setFault(size > most ? `That is ${bytes(size)}; at most ${bytes(most)} are taken.` : "");
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    input.current.value = ""; // what was chosen there before
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    if (entries.some((entry) => entry?.isDirectory)) {
      setFiles([]);
      setFault(FOLDER);
    } else take([...event.dataTransfer.files]);
  };
  const submit = async (event) => {
    event.preventDefault();
    try {
      const read = /** @type {[string, Uint8Array][]} */ (await Promise.all(files.map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())])));
      const [name, blob] = read.length === 1 ? [read[0][0], new Blob([read[0][1]])] : ["files.zip", zipOf(read)];
      if (await handIn(name, blob, message.trim())) setMessage("");
    } catch {
      setFault("That cannot be read any more, perhaps because it has changed; choose it again.");
    }
  };
  return html`<form class="stack" onSubmit=${submit}>
    <div class=${isOver ? "drop over" : "drop"} onDragOver=${(event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <label class="field">A single FILE.py, or a zip of a folder: drop it here or choose it
        <input type="file" multiple ref=${input} onChange=${(event) => take([...event.target.files])} aria-describedby="drop-status" />
      </label>
      <div id="drop-status" role="status">
        ${files.length > 0 && html`<p>${files.map((file) => `${file.name} (${bytes(file.size)})`).join(", ")}${files.length > 1 ? ", in one zip" : ""}</p>`}
        ${fault && html`<p class="heard bad">${fault}</p>`}
      </div>
    </div>
    <${Message} text=${message} onText=${setMessage} />
    <p><button class="main" disabled=${busy || !files.length || Boolean(fault)}>Hand in</button></p>
  </form>`;
}

/** A game and a language, as long as both are to be had here. */
function firstChoice(games, languages) {
  const [game, language] = load(CHOICE).split("/");
  return [games.includes(game) ? game : games[0], languages.some(({ name }) => name === language) ? language : languages[0]?.name];
}

function Starter({ rules, busy }) {
  const { games, owner } = rules;
  const languages = rules.languages.filter((one) => !one.missing);
  const [[game, language], setChoice] = useState(() => firstChoice(games, languages));
  const choose = (some) => {
    save(CHOICE, some.join("/"));
    setChoice(some);
  };
  if (!game || !language) return html`<p class="faint">No language is installed here in which there is a starter.</p>`;
  return html`<div class="stack">
    <div class="fields">
      <label class="field">Game
        <select value=${game} onChange=${(event) => choose([event.target.value, language])}>${games.map((name) => html`<option value=${name}>${title(name)}</option>`)}</select>
      </label>
      <label class="field">Language
        <select value=${language} onChange=${(event) => choose([game, event.target.value])}>${languages.map((one) => html`<option value=${one.name}>${one.title}</option>`)}</select>
      </label>
    </div>
    <${Editor} key=${`${game}/${language}`} game=${game} language=${language} owner=${owner} busy=${busy} />
  </div>`;
}

function Editor({ game, language, owner, busy }) {
  const draft = `arena.draft/${owner}/${game}/${language}`; // the key: who shares a browser does not share a program
  const [starter, setStarter] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(null);
  const [tries, setTries] = useState(0);
  const [text, setText] = useState("");
  const [message, setMessage] = useState("");
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    let gone = false;
    setError(null);
    request({ type: "starter", game, language }, (answer) => (answer.type === "starter_files" ? answer : undefined)).then(
      (found) => {
        if (gone) return;
        setStarter(found);
        setText(load(draft) || found.files[found.edit]);
      },
      (failure) => gone || setError(failure),
    );
    return () => (gone = true);
  }, [tries]);
  if (error) return html`<${Failure} error=${error} retry=${() => setTries(tries + 1)} />`;
  if (!starter) return html`<${Loading} what="the starter" />`;

  const { files, edit } = starter;
  const others = Object.keys(files).filter((name) => name !== edit);
  const write = (value) => {
    setText(value);
    save(draft, value === files[edit] ? "" : value);
  };
  // Tab goes on to the next control, as anywhere; a new line begins where the one before it does.
  const keyed = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    const { value, selectionStart } = event.target;
    const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    const [indent] = /** @type {RegExpMatchArray} */ (line.match(/^[ \t]*/));
    if (!indent) return;
    event.preventDefault();
    document.execCommand("insertText", false, "\n" + indent); // unlike setRangeText, it can be undone
  };
  const submit = async (event) => {
    event.preventDefault();
    const encoder = new TextEncoder();
    const all = Object.entries({ ...files, [edit]: text });
    const [name, blob] = all.length === 1 ? [edit, new Blob([text])] : [`${game}-${language}.zip`, zipOf(all.map(([each, one]) => [each, encoder.encode(one)]))];
    if (await handIn(name, blob, message.trim())) setMessage("");
  };
  return html`<form class="stack" onSubmit=${submit}>
    <label class="field"><span class="faint small"><code>${edit}</code> is yours to change; what you write stays in this browser.</span>
      <textarea class="code" rows="22" wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" value=${text} aria-label=${edit}
        onInput=${(event) => write(event.target.value)} onKeyDown=${keyed}></textarea>
    </label>
    ${others.length > 0 && html`<p class="faint small">It is handed in with the starter's other files: ${others.join(", ")}.</p>`}
    <${Message} text=${message} onText=${setMessage} />
    <p class="row">
      <button class="main" disabled=${busy || !text.trim()}>Hand in</button>
      <button type="button" disabled=${text === files[edit]} onClick=${() => setAsking(true)}>Begin again…</button>
    </p>
    ${asking && html`<${Ask} title="Begin again?" text="What you have written here is gone, and the starter's text is back." yes="Begin again" onYes=${() => write(files[edit])} onEnd=${() => setAsking(false)} />`}
  </form>`;
}
