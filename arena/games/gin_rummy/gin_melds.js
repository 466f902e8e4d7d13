// @ts-check
// Melds and deadwood (rules G1, G2), to sort a hand for the eye; what counts is decided by the arena alone.

const RANKS = "A23456789TJQK";
const SUITS = "shdc";

/** What an unmelded card counts (G1). @param {string} card */
export function points(card) {
  return Math.min(RANKS.indexOf(card[0]) + 1, 10);
}

/** What cards count together. @param {string[]} cards */
export function sum(cards) {
  return cards.reduce((all, card) => all + points(card), 0);
}

function place(card) {
  return SUITS.indexOf(card[1]) * 13 + RANKS.indexOf(card[0]);
}

/** By suit, then by rank. @param {string[]} cards */
export function sorted(cards) {
  return [...cards].sort((a, b) => place(a) - place(b));
}

/** All the melds that cards make. @param {string[]} hand @returns {string[][]} */
function meldsOf(hand) {
  const held = new Set(hand);
  const melds = [];
  for (const rank of RANKS) {
    const same = [...SUITS].map((suit) => rank + suit).filter((card) => held.has(card));
    if (same.length >= 3) melds.push(same);
    if (same.length === 4) for (const left of same) melds.push(same.filter((card) => card !== left));
  }
  for (const suit of SUITS) {
    for (let low = 0; low < 11; low++) {
      for (let high = low; high < 13 && held.has(RANKS[high] + suit); high++) {
        if (high >= low + 2) melds.push([...RANKS.slice(low, high + 1)].map((rank) => rank + suit));
      }
    }
  }
  return melds;
}

const remembered = new Map();

/**
 * Melds of least deadwood, and what is left. @param {string[]} hand
 * @returns {{melds: string[][], rest: string[], deadwood: number}}
 */
export function arrange(hand) {
  const key = sorted(hand).join("");
  let found = remembered.get(key);
  if (!found) {
    found = search(hand);
    // Stepping back and forth repeats hands; a long match must not fill the memory.
    if (remembered.size > 2000) remembered.clear();
    remembered.set(key, found);
  }
  return found;
}

function search(hand) {
  const melds = meldsOf(hand);
  let best = { saved: -1, melds: /** @type {string[][]} */ ([]) };
  const take = (from, used, saved, taken) => {
    if (saved > best.saved) best = { saved, melds: taken };
    for (let at = from; at < melds.length; at++) {
      const meld = melds[at];
      if (!meld.some((card) => used.has(card))) take(at + 1, new Set([...used, ...meld]), saved + sum(meld), [...taken, meld]);
    }
  };
  take(0, new Set(), 0, []);
  const melded = new Set(best.melds.flat());
  const rest = sorted(hand.filter((card) => !melded.has(card)));
  return { melds: best.melds, rest, deadwood: sum(rest) };
}

/** A meld with cards laid off on it, in order. @param {string[]} meld @param {string[]} more */
export function withLayoffs(meld, more) {
  return sorted([...meld, ...more]);
}
