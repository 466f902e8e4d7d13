// Log in and out at the top of the page, with the instructor's token, for all tabs of this browser.

import { html, useEffect, useRef, useState } from "./lib/preact.js";
import { setToken, token, useToken, whose } from "./api.js";
import { Dialog } from "./components.js";

const UNKNOWN = "This arena does not know that token. Copy the whole of it from what your instructor has given you.";

/** Says who is logged in; a click opens the way in or out. */
export function Login({ me }) {
  const shown = useToken();
  const [isOpen, setOpen] = useState(false);
  const name = me?.name || "logged in";
  const label = shown ? `Logged in as ${name}: log out` : "Log in";
  return html`<div class="login">
    <button type="button" class=${shown ? "plain in" : "plain"} aria-label=${label} title=${label} onClick=${() => setOpen(true)}>
      <svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="5" r="3.2" /><path d="M1.5 15c.6-4 3.2-5.5 6.5-5.5s5.9 1.5 6.5 5.5z" /></svg>
      <bdi>${shown ? name : "Log in"}</bdi>
    </button>
    ${isOpen && (shown ? html`<${Out} me=${me} onEnd=${() => setOpen(false)} />` : html`<${In} onEnd=${() => setOpen(false)} />`)}
  </div>`;
}

/** Who has the token: {kind, name}; null while that is not known, and `isUnknown` if it is nobody's any more. */
export function useMe() {
  const token = useToken();
  const [me, setMe] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let gone = false;
    setMe(null);
    if (token) {
      whose(token).then(
        (found) => gone || setMe(found),
        (error) => gone || (error.status === 401 && setMe({ name: "unknown token", isUnknown: true })),
      );
    }
    return () => (gone = true);
  }, [token]);
  return me;
}

function In({ onEnd }) {
  const field = useRef(null);
  const [status, setStatus] = useState({ busy: false, text: "" });
  const enter = (close) => async (event) => {
    event.preventDefault();
    const value = field.current.value.trim();
    // Other characters cannot be sent in a header.
    if (!/^[!-~]+$/.test(value)) return void setStatus({ busy: false, text: UNKNOWN });
    setStatus({ busy: true, text: "" });
    try {
      await whose(value);
      close();
      onEnd();
      setToken(value);
    } catch (error) {
      setStatus({ busy: false, text: error.status === 401 ? UNKNOWN : error.message });
      field.current?.select();
    }
  };
  return html`<${Dialog} title="Log in" onEnd=${onEnd}>${(close) => html`
    <form class="stack" onSubmit=${enter(close)}>
      <label class="field">Your token
        <input type="password" ref=${field} required maxlength="256" autocomplete="off" spellcheck="false" aria-describedby="login-status" />
      </label>
      <p id="login-status" role="status" class=${status.text ? "heard" : ""}>${status.busy ? "Asking the arena…" : status.text}</p>
      <p class="row"><button class="main" disabled=${status.busy}>Log in</button> <button type="button" onClick=${close}>Cancel</button></p>
      <p class="faint small">With it you see your own bot's cards while its competition goes on. This browser keeps it until you log out.</p>
    </form>`}<//>`;
}

function Out({ me, onEnd }) {
  const what = me?.isUnknown
    ? "The token that this browser has is good no more; log out, then log in with the new one."
    : me?.kind === "instructor"
      ? "You are an instructor here, and see everything."
      : "You see what your own bots are told, also while a competition goes on.";
  return html`<${Dialog} title=${me && !me.isUnknown ? html`Logged in as <bdi>${me.name}</bdi>` : "Logged in"} onEnd=${onEnd}>${(close) => {
    const leave = async () => {
      close();
      onEnd();
      const left = token();
      setToken("");
      (await import("./views/play_chair.js")).forgetChairs(left);
    };
    return html`<p>${what}</p>
      <p class="row"><button type="button" class="main" onClick=${leave}>Log out</button> <button type="button" onClick=${close}>Stay logged in</button></p>`;
  }}<//>`;
}
