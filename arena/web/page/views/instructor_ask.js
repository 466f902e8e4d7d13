// An instructor's request: sent, confirmed where it cannot be undone, and its answer shown.

import { html, useState } from "../lib/preact.js";
import { instruct } from "../api.js";
import { Dialog } from "../components.js";

/**
 * The state of one request, and the function that sends it.
 * @returns {[{busy?: boolean, done?: any, error?: string}, (message: object | Error) => Promise<any>]}  an Error is shown, not sent
 */
export function useWord() {
  const [word, setWord] = useState({});
  const say = async (message) => {
    if (message instanceof Error) return void setWord({ error: message.message });
    setWord({ busy: true });
    try {
      const done = await instruct(message);
      setWord({ done });
      return done;
    } catch (error) {
      setWord({ error: error.message });
      return null;
    }
  };
  return [word, say];
}

export function Heard({ word }) {
  return html`<div role="status">
    ${word.busy && html`<p class="faint">Asking the arena…</p>`}
    ${word.done && html`<p class="heard good">${word.done.text}</p>`}
    ${word.error && html`<p class="heard bad">${word.error}</p>`}
  </div>`;
}

/** A question before an action that cannot be undone; `also` is another way to do it, as `[yes, onYes]`. */
export function Ask({ title, text, yes, no = "No, leave it", onYes, also = null, onEnd }) {
  const ways = [[yes, onYes], ...(also ? [also] : [])];
  return html`<${Dialog} title=${title} onEnd=${onEnd}>${(close) => {
    const confirmed = (does) => {
      close();
      does();
    };
    return html`<p>${text}</p>
      <p class="row">
        <button type="button" onClick=${close}>${no}</button>
        ${ways.map(([word, does]) => html`<button type="button" class="danger" onClick=${() => confirmed(does)}>${word}</button>`)}
      </p>`;
  }}<//>`;
}
