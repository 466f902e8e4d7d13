// Sit down: choose a game and whom to play, then play it, as an ordinary client of the protocol.
// The chair outlives the view: whoever looks at the standings in between finds the table as it was left.

import { html, useEffect, useReducer } from "../lib/preact.js";
import { Page } from "../parts.js";
import { title } from "../words.js";
import { Chair } from "./play_chair.js";
import { Form } from "./play_form.js";
import { AtTable } from "./play_table.js";

const sheet = document.createElement("link");
sheet.rel = "stylesheet";
sheet.href = new URL("play.css", import.meta.url).href;
document.head.append(sheet);

let chair = null;
const lookers = new Set();
const changed = () => lookers.forEach((look) => look());

/** @param {{route: import("../route.js").Route}} props */
export default function Play({ route }) {
  const [, look] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    lookers.add(look);
    if (!chair) {
      chair = Chair.kept(changed);
      if (chair) look();
    }
    return () => lookers.delete(look);
  }, []);

  const sit = (request) => {
    chair = new Chair(request, changed).sit();
    changed();
  };
  const leave = () => {
    chair?.leave();
    chair = null;
    changed();
  };
  const again = () => {
    const { request } = chair;
    leave();
    sit(request);
  };

  if (chair?.table) return html`<${AtTable} chair=${chair} onLeave=${leave} onAgain=${again} />`;
  if (chair && chair.phase !== "failed") return html`<${Waiting} chair=${chair} onLeave=${leave} />`;
  return html`<${Form} game=${route.game} refused=${chair?.text} onSit=${sit} />`;
}

const WAITS = {
  asking: "Asking for a chair…",
  waiting: "Your chair is ready; the others are coming to the table…",
  lost: "The connection is lost; trying again…",
};

function Waiting({ chair, onLeave }) {
  return html`<${Page} title=${title(chair.request.game)}>
    <div class="empty">
      <p class="what" role="status">${WAITS[chair.phase] ?? "The cards are being shuffled…"}</p>
      <p><button type="button" onClick=${onLeave}>Stand up</button></p>
    </div>
  <//>`;
}
