// How an instructor's word is said, made sure of, and its answer shown.

import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { instruct } from "../arena.js";

/**
 * The state of one word and what says it.
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

/** What the arena answered. */
export function Heard({ word }) {
  return html`<div role="status">
    ${word.busy && html`<p class="faint">Asking the arena…</p>`}
    ${word.done && html`<p class="heard good">${word.done.text}</p>`}
    ${word.error && html`<p class="heard bad">${word.error}</p>`}
  </div>`;
}

/** A question before what cannot be undone. */
export function Ask({ title, text, yes, onYes, onEnd }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const confirmed = () => {
    dialog.current.close();
    onYes();
  };
  return html`<dialog ref=${dialog} onClose=${onEnd} aria-labelledby="ask-title">
    <div class="stack">
      <h2 id="ask-title">${title}</h2>
      <p>${text}</p>
      <p class="row">
        <button type="button" onClick=${() => dialog.current.close()}>No, leave it</button>
        <button type="button" class="danger" onClick=${confirmed}>${yes}</button>
      </p>
    </div>
  </dialog>`;
}
