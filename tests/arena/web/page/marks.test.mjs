// The marks of a seat's mistakes, among the steps of real matches.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "./dom.mjs";

const { matches } = JSON.parse(readFileSync(new URL("./matches.json", import.meta.url), "utf8"));
const { MatchSteps } = await import("../page/table/steps.js");
const { fetchGame } = await import("../page/table/games.js");
const { bestText, costText, gradesOf, marksOfRound, nextMark, stepOf } = await import("../page/table/marks.js");

const mark = (round, turn, grade = 2) => ({ round, turn, answer_text: "bets", best_text: "checks", cost: 0.4, error: null, unit: "chips", grade });

for (const { name, game, settings, players, view, rounds } of matches.filter((each) => each.drawn === each.game)) {
  const replay = new MatchSteps(await fetchGame(game), { settings, players, view });
  replay.scoresAfter = (round) => rounds[round - 1]?.scores;
  for (const round of rounds) replay.put(round);

  test(`${name}: every decision stands at one step, in the order of play`, () => {
    for (const { round, events } of rounds) {
      const answered = events.filter(({ event }) => event === "answered").map(({ seat }) => seat);
      const decided = replay.steps(round).flatMap((step) => step.decided);
      assert.deepEqual(decided.map(({ seat }) => seat), answered, `round ${round}`);
      players.forEach((_, seat) => assert.deepEqual(decided.filter((one) => one.seat === seat).map(({ turn }) => turn), answered.filter((one) => one === seat).map((_, at) => at + 1)));
    }
  });

  if (view.kind === "all") test(`${name}: a decision stands where its answer is told`, () => {
    const steps = replay.steps(1);
    for (const { seat, turn } of steps.flatMap((step) => step.decided)) {
      const step = steps[stepOf(steps, seat, turn)];
      if (step.seat !== null) assert.equal(step.seat, seat);
    }
  });

  test(`${name}: the next mistake leads through all of them, and begins anew`, () => {
    const seat = players.length - 1;
    const marks = rounds.flatMap(({ round, events }) => events.filter((event) => event.event === "answered" && event.seat === seat).map((_, at) => mark(round, at + 1)));
    let at = { round: 1, step: 0 };
    const seen = [];
    for (let times = 0; times < marks.length + 1; times++) {
      const next = nextMark(marks, seat, at.round, at.step, replay.steps(at.round));
      at = { round: next.round, step: stepOf(replay.steps(next.round), seat, next.turn) };
      seen.push(next);
    }
    // Two answers that no step tells apart are one stop.
    const stops = marks.filter((each, index) => stepOf(replay.steps(each.round), seat, each.turn) !== (marks[index + 1]?.round === each.round ? stepOf(replay.steps(each.round), seat, marks[index + 1].turn) : -2));
    assert.deepEqual(new Set(seen.map(({ round, turn }) => `${round} ${turn}`)).size, stops.length);
    assert.equal(seen[stops.length], seen[0]);
  });
}

test("a round that is not there yet has no marks, and is gone to", () => {
  assert.equal(marksOfRound([mark(2, 1)], 2, null, 0).size, 0);
  assert.deepEqual(nextMark([mark(2, 1)], 0, 2, 0, null), mark(2, 1));
  assert.equal(nextMark([], 0, 1, 0, null), null);
});

test("a mistake says what would have been better, and by how much", () => {
  assert.equal(bestText(mark(1, 1)), "best was: checks (cost 0.40 chips)");
  assert.equal(costText({ ...mark(1, 1), cost: 3.14, error: 0.82, unit: "% of the game" }), "3.14 [1.53, 4.75] % of the game");
  assert.deepEqual(gradesOf([mark(1, 1, 1), mark(1, 2, 3), mark(2, 1, 1)]), [[3, 1], [1, 2]]);
});
