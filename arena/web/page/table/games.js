// @ts-check
// How a game is drawn: by its own module, which is fetched with the first table of that game, or by the general view.

import { GAMES } from "../games/games.js";
import { before } from "./reducer.js";

/** @type {Map<string, any>} */
const fetched = new Map();

/**
 * The view of a game: what its module exports, with the news that end a round and those that may follow. The general view takes
 * its place where it cannot be used, at once or by its `fallback` once it has failed; `broken` then says why, for its author.
 * @param {string} name @returns {Promise<any>}
 */
export async function fetchGame(name) {
  const found = fetched.get(name);
  if (found) return found;
  const described = GAMES[name];
  const { view, style, closes, follows } = described;
  const { viewOf } = await import("./general.js");
  const general = { before, ...viewOf(described), closes, follows };
  const fallback = (error) => {
    styled("./general.css");
    return { ...general, broken: brokenText(view, error) };
  };
  let game = general;
  if (view) {
    try {
      const [own] = await Promise.all([import(`../games/${view}`), style && styled(`../games/${style}`)]);
      game = { before, ...own, closes, follows, fallback };
    } catch (error) {
      return fallback(error); // not for ever: it may have been the network
    }
  } else {
    await styled("./general.css");
  }
  fetched.set(name, game);
  return game;
}

/** What went wrong in a view, and in which line of which file, as far as the browser says. */
function brokenText(view, error) {
  const [, file, line] = /games\/([^\s?:]+)(?:\?[^\s:]*)?:(\d+)/.exec(String(error?.stack)) ?? [];
  return `${file ? `${file}, line ${line}` : view}: ${error}. The general view is shown instead.`;
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
