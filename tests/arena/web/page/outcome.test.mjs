// The sentence with which the page of a match begins.

import assert from "node:assert/strict";
import { test } from "node:test";
import "./dom.mjs";

const { GAMES } = await import("../page/games/games.js");
const { outcomeText } = await import("../page/table/outcome.js");

const named = (is) => Object.keys(GAMES).find((name) => is(GAMES[name]));
const duel = named(({ seats, is_count: isCount }) => seats === 2 && !isCount);
const counted = named(({ seats, is_count: isCount }) => seats === 2 && isCount);
const alone = named(({ seats }) => seats === 1);
const table = named(({ seats }) => seats === 4);

const outcomes = [
  [counted, [1, 2], "ben won 2 games to 1."],
  [counted, [1, 1], "The match is a draw."],
  [duel, [17, -17], "ann won 17 from ben."],
  [duel, [3, 0], "ann won, +3 to 0."],
  [alone, [1300], "ann won 1,300 against the dealer."],
  [alone, [-500], "ann lost 500 against the dealer."],
  [alone, [0], "ann came out even."],
  [table, [2, -11, -12, 21], "dan won with +21, before ann (+2), ben (−11) and cem (−12)."],
  [table, [5, -5, -5, 5], "ann and dan share the first place with +5."],
];

for (const [game, scores, text] of outcomes) {
  test(text, () => {
    const match = { game, players: ["ann", "ben", "cem", "dan"].slice(0, scores.length) };
    const ended = (kind, seat = null) => outcomeText({ ...match, result: { scores, termination: { kind, seat } } });
    assert.equal(ended("completed"), text);
    assert.equal(ended("timeout", 0), "ann is out: out of time.");
    assert.equal(ended("void"), "The match is void and counts for nobody.");
  });
}
