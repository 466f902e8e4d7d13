// The class and the log: a roster goes in as CSV, its new tokens come out once; names change; the arena's log.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { Name, Panel, saveFile } from "../components.js";
import { count } from "../format.js";
import { Ask, Heard, useWord } from "./instructor_ask.js";

const LOG_MS = 5000;

let untaken = null; // new tokens, also while another view is shown: they cannot be shown again later

/** Import a class: a file or what is pasted. */
export function Roster() {
  const [word, say] = useWord();
  const [text, setText] = useState("");
  const [tokens, setTokens] = useState(untaken);
  const show = (some) => setTokens((untaken = some));
  const picked = async (event) => {
    const file = event.target.files[0];
    if (file) await textOf(file).then(setText, say);
  };
  const submit = async (event) => {
    event.preventDefault();
    const done = await say({ action: "import", text });
    if (!done) return;
    if (done.tokens?.length) show([...(untaken ?? []), ...done.tokens]);
    setText("");
  };
  return html`<${Panel} title="The class">
    <form class="stack" onSubmit=${submit}>
      <p class="faint small">A table as a spreadsheet writes it, with a first line that names its columns: <code>name</code>, and if you like <code>email</code> and <code>team</code>. Who is on the roster already keeps the token.</p>
      <label class="field">From a file <input type="file" accept=".csv,.tsv,.txt,text/csv" onChange=${picked} /></label>
      <label class="field">or as text
        <textarea rows="5" required spellcheck="false" value=${text} placeholder=${"name,email,team\nAda,ada@example.org,blue"} onInput=${(event) => setText(event.target.value)}></textarea>
      </label>
      <p><button class="main" disabled=${word.busy || !text.trim()}>Put on the roster</button></p>
      <${Heard} word=${word} />
    </form>
    ${tokens && html`<${Tokens} tokens=${tokens} onDone=${() => show(null)} />`}
    <${Rename} />
  <//>`;
}

/** A file's text: UTF-8, or UTF-16 with a byte order mark, as Excel's "Unicode text" is. @param {File} file */
async function textOf(file) {
  const data = await file.arrayBuffer();
  const [first, second] = new Uint8Array(data);
  const encoding = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(data);
  } catch {
    throw new Error(`expected text in UTF-8, ${file.name} is something else; a spreadsheet saves it as 'CSV UTF-8'`);
  }
}

/** Give somebody another name, or take somebody off the roster. */
function Rename() {
  const [word, say] = useWord();
  const [name, setName] = useState("");
  const [to, setTo] = useState("");
  const [asking, setAsking] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (await say({ action: "rename", bot: name.trim(), text: to.trim() })) {
      setName("");
      setTo("");
    }
  };
  const unlist = async () => {
    if (await say({ action: "unlist", bot: name.trim() })) setName("");
  };
  return html`<form class="stack" onSubmit=${submit}>
    <h3>A name on the roster</h3>
    <p class="faint small">Not while somebody is connected under it, or takes part in what goes on. Results keep the old name.</p>
    <div class="fields">
      <label class="field">Who
        <input required value=${name} maxlength="64" spellcheck="false" autocomplete="off" onInput=${(event) => setName(event.target.value)} />
      </label>
      <label class="field">New name
        <input required value=${to} maxlength="64" spellcheck="false" autocomplete="off" onInput=${(event) => setTo(event.target.value)} />
      </label>
    </div>
    <p class="row">
      <button disabled=${word.busy || !name.trim() || !to.trim()}>Rename</button>
      <button type="button" class="danger" disabled=${word.busy || !name.trim()} onClick=${() => setAsking(true)}>Take off the roster…</button>
    </p>
    <${Heard} word=${word} />
    ${asking && html`<${Ask} title=${`Take ${name.trim()} off the roster?`} text="The token is no longer valid, e-mail and team are forgotten, and the name is free for somebody else. Results keep the name, and programs that were handed in stay."
      yes="Take off" onYes=${unlist} onEnd=${() => setAsking(false)} />`}
  </form>`;
}

/** New tokens: the arena keeps only their hashes, so this is the one time that they can be seen. */
function Tokens({ tokens, onDone }) {
  const [shown, setShown] = useState(false);
  return html`<div class="tokens" role="region" aria-label="New tokens">
    <h3>${count(tokens.length, "new token")}</h3>
    <p><b>They are told this once</b> and kept nowhere: download them now and hand each to its owner.</p>
    <p class="row">
      <button type="button" class="main" onClick=${() => saveFile("tokens.csv", new Blob([csvOf(tokens)], { type: "text/csv" }))}>Download tokens.csv</button>
      <button type="button" aria-expanded=${shown ? "true" : "false"} onClick=${() => setShown(!shown)}>${shown ? "Hide them" : "Show them here"}</button>
      <button type="button" onClick=${onDone}>I have them</button>
    </p>
    ${shown &&
    html`<div class="wide" tabindex="0" role="region" aria-label="Tokens">
      <table class="grid"><thead><tr><th scope="col">Name</th><th scope="col">Token</th></tr></thead>
        <tbody>${tokens.map(([name, token]) => html`<tr key=${name}><th scope="row"><${Name} name=${name} /></th><td><code>${token}</code></td></tr>`)}</tbody>
      </table>
    </div>`}
  </div>`;
}

// With a byte order mark, as every CSV file of the arena: without one Excel reads Müller as MÃ¼ller.
function csvOf(tokens) {
  return "\ufeffname,token\r\n" + tokens.map((row) => row.map(cellOf).join(",") + "\r\n").join("");
}

// A spreadsheet takes what begins like a formula for one.
function cellOf(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The arena's latest log lines, the newest at the end. */
export function Log() {
  const [word, say] = useWord();
  const [open, setOpen] = useState(false);
  const [lines, setLines] = useState(null);
  const box = useRef(null);
  useEffect(() => {
    if (!open) return undefined;
    let timer = 0;
    let gone = false;
    const read = async () => {
      const done = await say({ action: "log" });
      if (gone) return;
      if (!done) return; // refused, or the arena is away; `word` shows which
      setLines(done.lines ?? []);
      timer = setTimeout(read, LOG_MS);
    };
    read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [open]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  return html`<${Panel} title="Log" side=${html`<button type="button" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${open ? "Close it" : "See it"}</button>`}>
    ${open && word.error && html`<${Heard} word=${word} />`}
    ${open && lines && (lines.length ? html`<pre ref=${box} tabindex="0" aria-label="what the arena has told lately">${lines.join("\n")}</pre>` : html`<p class="faint">It has told nothing yet.</p>`)}
    ${!open && html`<p class="faint small">What the arena has told where it runs, and the matches that are over.</p>`}
  <//>`;
}
