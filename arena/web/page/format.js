// Numbers, times, cards and the arena's words as text for people: pure functions, no markup.

import { GAMES } from "./games/games.js";

// One for each number of decimals: making one takes longer than a table of figures.
const FORMATS = [0, 1, 2, 3, 4, 5, 6].map((digits) => new Intl.NumberFormat("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const FORMS = {
  round_robin: "round robin",
  elimination: "elimination",
  league: "league",
  ladder: "ladder",
};
const ENDINGS = {
  completed: "played to the end",
  void: "void, it does not count",
  illegal: "an illegal answer",
  malformed: "a message that cannot be read",
  timeout: "out of time",
  oversize: "a message too large",
  overflow: "read too slowly",
  memory: "too much memory",
  processes: "too many processes",
  cpu: "too much computing time",
  crash: "its program crashed",
  absent: "did not come",
  disconnect: "lost its connection",
  removed: "removed by the instructor",
};
const RANKS = {
  A: "ace", K: "king", Q: "queen", J: "jack", T: "ten", 9: "nine", 8: "eight",
  7: "seven", 6: "six", 5: "five", 4: "four", 3: "three", 2: "two",
};
const SIGNS = { s: "♠", h: "♥", d: "♦", c: "♣" };
const AS_TEXT = "\ufe0e"; // not as an emoji
const SUITS = { s: "spades", h: "hearts", d: "diamonds", c: "clubs" };

/** 12345.6 → "12,346"; with up to three decimals if asked for; null → "–". */
export function number(value, digits = 0) {
  if (value == null) return "–";
  const text = FORMATS[digits].format(Math.abs(value));
  return value < 0 && /[1-9]/.test(text) ? "−" + text : text;
}

/** With its sign, as scores are shown: 5 → "+5", -5 → "−5", 0 → "0". */
export function signed(value, digits = 0) {
  const text = number(value, digits);
  return value > 0 && /[1-9]/.test(text) ? "+" + text : text;
}

/** As many decimals as a figure of that size deserves: 1.234 → 2, 12.34 → 1, 1234.5 → 0. */
export function digitsFor(size) {
  const large = Math.abs(size);
  return large >= 100 ? 0 : large >= 10 ? 1 : large >= 0.1 ? 2 : 3;
}

/** So many decimals, or as many more as the ends of an interval need to look different: [0.61, 0.68] → 2. @param {[number, number] | null} interval */
export function digitsOf(interval, digits) {
  const width = interval ? interval[1] - interval[0] : 0;
  return width > 0 ? Math.min(FORMATS.length - 1, Math.max(digits, -Math.floor(Math.log10(width)))) : digits;
}

/** What the ranges of a competition are, in a sentence below them; nothing where there are none. @param {{name: string, block: number, without: number} | null} unit */
export function intervalNote(unit) {
  if (!unit) return "";
  const what = unit.block > 1 ? `blocks of ${unit.block} ${unit.name}s` : unit.name === "match" ? "matches" : `${unit.name}s`;
  const without = unit.without ? `; of ${count(unit.without, "match", "matches")} without sums of the ${unit.name}s the unit is the match` : "";
  return `[…]: 95 % intervals, made so that at most 1 in 20 such ranges is wrong; each is computed from ${what}${without}.`;
}

export function percent(share, digits = 0) {
  return share == null ? "–" : number(share * 100, digits) + " %";
}

/** "1 match", "2 matches"; `many` if the plural is not formed by an s. */
export function count(value, one, many = one + "s") {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** Seconds in words: 0.4 → "0.4 s", 75 → "1 min 15 s", 5400 → "1 h 30 min". */
export function duration(seconds) {
  if (seconds == null) return "–";
  if (seconds < 10) return `${Math.max(0, Math.round(seconds * 10) / 10)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 && minutes < 10 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} days`;
}

/** Milliseconds in words: 3 → "3 ms", 0.2 → "0.2 ms", 12000 → "12 s". */
export function milliseconds(value) {
  if (value == null) return "–";
  if (value >= 10_000) return duration(value / 1000);
  return `${number(value, value > 0 && value < 1 ? 1 : 0)} ms`;
}

/** A clock's face: 75.4 → "1:15"; below ten seconds with tenths: 7.25 → "7.2". */
export function clockFace(seconds) {
  const left = Math.max(0, seconds);
  if (left < 10) return (Math.floor(left * 10) / 10).toFixed(1);
  const whole = Math.floor(left);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${String(whole % 60).padStart(2, "0")}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${String(whole % 60).padStart(2, "0")}`;
}

/** How long ago a Unix time was: "just now", "5 min ago". */
export function ago(at, now = Date.now() / 1000) {
  const passed = now - at;
  return passed < 5 ? "just now" : `${duration(passed < 60 ? Math.round(passed) : passed).replace(/ \d+ s$/, "")} ago`;
}

/**
 * A Unix time as people here write it, in their zone: the time alone if it is today.
 * @param {number | null} at
 * @param {"short" | "medium"} [timeStyle]  medium has seconds
 */
export function time(at, timeStyle = "short") {
  if (at == null) return "–";
  const when = new Date(at * 1000);
  const today = when.toDateString() === new Date().toDateString();
  return when.toLocaleString("en-GB", today ? { timeStyle } : { dateStyle: "medium", timeStyle });
}

/** A Unix time with its day: "Fri, 4 Dec, 18:00". @param {number} at */
export function dated(at) {
  return new Date(at * 1000).toLocaleString("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** Whose bot it is: "ann" of "ann/two". @param {string} name */
export function ownerOf(name) {
  return name.split("/")[0];
}

/** Bots in the order of their names, so that those of an owner stand together. @param {string} one @param {string} other */
export function byName(one, other) {
  return one.localeCompare(other, "en", { numeric: true });
}

/** The title of a game; of one that is not here any more, its name in words. */
export function title(game) {
  return GAMES[game]?.title ?? spaced(game);
}

export function formTitle(form) {
  return FORMS[form] ?? String(form).replaceAll("_", " ");
}

/** With the version that has played: "ann v3", "ann (connected)". */
export function versioned(name, version) {
  return version === "connected" ? `${name} (connected)` : version ? `${name} ${version}` : name;
}

export function seatName(seat) {
  return `seat ${seat + 1}`;
}

/** "Td" → "ten of diamonds", "A" → "ace", null → "hidden card". */
export function cardName(card) {
  if (!card) return "hidden card";
  const rank = RANKS[card[0]] ?? card[0];
  return card[1] ? `${rank} of ${SUITS[card[1]] ?? card[1]}` : rank;
}

export function cardSign(card) {
  return card ? `${card[0] === "T" ? "10" : card[0]}${card[1] ? SIGNS[card[1]] + AS_TEXT : ""}` : "a card";
}

export function termination(kind) {
  return ENDINGS[kind] ?? spaced(kind);
}

export function isOffence(kind) {
  return kind !== "completed" && kind !== "void" && kind != null;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function spaced(word) {
  return capital(String(word).replaceAll("_", " "));
}

/** ["a", "b", "c"] → "a, b and c"; the rest are counted when there are more than `most`. */
export function list(names, most = 5) {
  const shown = names.length > most ? [...names.slice(0, most - 1), `${names.length - most + 1} more`] : names;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}`;
}
