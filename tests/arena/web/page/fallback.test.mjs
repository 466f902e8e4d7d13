// A view that fails in the middle of a match gives way to the general one, which draws the match from its beginning.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "./dom.mjs";

const { matches } = JSON.parse(readFileSync(new URL("./matches.json", import.meta.url), "utf8"));
const { MatchSteps } = await import("../page/table/steps.js");
const { fetchGame } = await import("../page/table/games.js");
const { GAMES } = await import("../page/games/games.js");

for (const { name, game, settings, players, view, rounds } of matches.filter((each) => each.drawn === each.game && GAMES[each.game].view)) {
  test(`${name}: the general view goes on`, async () => {
    const own = await fetchGame(game);
    let left = 3;
    const step = (state, event) => {
      if (left-- === 0) throw new TypeError("no such card");
      return own.step(state, event);
    };
    const replay = new MatchSteps({ ...own, step }, { settings, players, view });
    replay.scoresAfter = (round) => rounds[round - 1]?.scores;
    for (const round of rounds) replay.put(round);
    const steps = rounds.map(({ round }) => replay.steps(round));

    assert.match(replay.game.broken, /TypeError: no such card. The general view is shown instead.$/);
    assert.notEqual(replay.game.Table, own.Table);
    assert.ok(steps.every((each) => each.every(({ state }) => Array.isArray(state.before))), "the general view's own states");
    assert.ok(steps.every((each) => each.length > 1));
  });
}
