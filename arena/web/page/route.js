// The address of every view, the part after the `#`, read and written in one place.
//
//   #/                       lobby              #/m/ID[/ROUND[/STEP]]      a match, at a moment; #/m/ID/end
//   #/competitions           all of them        #/play[/GAME]              sit down
//   #/submit[/versions]      hand a program in  #/submit/NUMBER            the log of a submission
//   #/c/ID[/TAB]             one competition    #/instructor
//   #/c/ID/bot/NAME          a bot in it        #/c/ID/pairing/A/B         two bots in it
//   #/c/ID/bot/NAME/strength[/OTHER]            how good it is, and another one beside it

import { useEffect, useMemo, useState } from "./lib/preact.js";

/**
 * @typedef {object} Route
 * @property {string} view  lobby, competitions, competition, bot, pairing, match, play, submit, instructor or lost
 * @property {string} [id]  of the competition, the match or the submission
 * @property {string} [tab]  of the competition or of what is handed in: "" is the first
 * @property {string} [name]  of the bot
 * @property {string} [other]  the bot beside it
 * @property {string} [a]
 * @property {string} [b]
 * @property {number} [round]  from 1
 * @property {number} [step]  from 0
 * @property {string} [game]
 */

/** The link to a view: `href("c", id, "bot", name)`; parts that are null are left out. */
export function href(...parts) {
  const given = parts.filter((part) => part != null && part !== "");
  return "#/" + given.map((part) => encodeURIComponent(String(part))).join("/");
}

/** Change the address without an entry in the browser's history, as when a match is stepped through. */
export function stay(...parts) {
  history.replaceState(null, "", href(...parts));
}

/** @returns {Route} */
export function parse(hash) {
  let parts;
  try {
    parts = hash.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return { view: "lost" };
  }
  while (parts.length > 1 && parts[parts.length - 1] === "") parts.pop();
  const [head, id, third, ...rest] = parts;
  if (head === "") return { view: "lobby" };
  if (head === "competitions" && parts.length === 1) return { view: "competitions" };
  if (head === "instructor" && parts.length === 1) return { view: "instructor" };
  if (head === "submit" && parts.length < 3) {
    if (whole(id)) return { view: "submit", id };
    if (!id || id === "versions") return { view: "submit", tab: id ?? "" };
  }
  if (head === "play") return { view: "play", game: id };
  if (head === "m" && id) {
    if (third === "end" && rest.length === 0) return { view: "match", id, round: END, step: END };
    return { view: "match", id, round: whole(third), step: whole(rest[0]) };
  }
  if (head === "c" && id) {
    if (third === "bot" && rest.length === 1) return { view: "bot", id, name: rest[0] };
    if (third === "bot" && rest[1] === "strength" && rest.length < 4) return { view: "bot", id, name: rest[0], tab: rest[1], other: rest[2] };
    if (third === "pairing" && rest.length === 2) return { view: "pairing", id, a: rest[0], b: rest[1] };
    if (rest.length === 0) return { view: "competition", id, tab: third ?? "" };
  }
  return { view: "lost" };
}

/** The present route; the component is drawn again when it changes. @returns {Route} */
export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    changed(); // effects run after the page is drawn, and it may have changed by then
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return useMemo(() => parse(hash), [hash]);
}

const END = 1e9; // after all rounds and steps

function whole(text) {
  return /^\d{1,9}$/.test(text ?? "") ? Number(text) : undefined;
}
