// @ts-check
// How a game is drawn: by its own module, which is fetched with the first table of that game, or by the general view.

import { GAMES } from "../games/games.js";
import { before } from "./reducer.js";

/** @type {Map<string, any>} */
const fetched = new Map();

/**
 * The view of a game: what its module exports, with the news that end a round and those that may follow.
 * @param {string} name @returns {Promise<any>}
 */
export async function fetchGame(name) {
  const found = fetched.get(name);
  if (found) return found;
  const described = GAMES[name];
  const { view, style, closes, follows } = described;
  const link = view ? style && `../games/${style}` : "./general.css";
  const [module] = await Promise.all([view ? import(`../games/${view}`) : import("./general.js"), link && styled(link)]);
  const own = view ? module : module.viewOf(described);
  const game = { before, ...own, closes, follows };
  fetched.set(name, game);
  return game;
}

/** A style sheet is there, or is not needed to go on. */
function styled(path) {
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = new URL(path, import.meta.url).href;
  return new Promise((done) => {
    sheet.onload = sheet.onerror = done;
    document.head.append(sheet);
  });
}

/** The rules in short, for a person who sits down. @param {string} name */
export function rulesOf(name) {
  return GAMES[name]?.summary ?? "";
}

/** What a game's rounds are called. @param {string} name @returns {string} */
export function unitOf(name) {
  return GAMES[name]?.round ?? "round";
}
