// Real matches, as every kind of viewer gets them, folded by the page's reducers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cardsIn, place, press, settled } from "./dom.mjs";

const { matches, hands } = JSON.parse(readFileSync(new URL("./matches.json", import.meta.url), "utf8"));
const { html, render } = await import("../page/lib/preact.js");
const { MatchSteps, isEnd } = await import("../page/table/steps.js");
const { Live } = await import("../page/table/live.js");
const { Record } = await import("../page/table/record.js");
const { arrange } = await import("../page/games/arena.games.gin_rummy/gin_melds.js");
const { GAMES } = await import("../page/games/games.js");
const { fetchGame } = await import("../page/table/games.js");
const { viewOf } = await import("../page/table/general.js");
const { before } = await import("../page/table/reducer.js");

const games = {};
for (const { game, drawn, by_seat: bySeat } of matches) {
  games[drawn] ??= drawn === game ? await fetchGame(game) : { before, ...viewOf({ ...GAMES[game], by_seat: bySeat }), ...GAMES[game] };
}

function stepsOf(match, numbers) {
  const { drawn, settings, players, view, rounds } = match;
  const replay = new MatchSteps(games[drawn], { settings, players, view });
  replay.scoresAfter = (round) => rounds[round - 1]?.scores;
  for (const number of numbers ?? rounds.map(({ round }) => round)) replay.put(rounds[number - 1]);
  return replay;
}

/** Every card that an event names; those of Ace-King-Queen have no suit. */
function cardsOf(event) {
  const cards = new Set();
  const look = (value) => {
    if (typeof value === "string" && /^[2-9TJQKA]([shdc])?$/.test(value)) cards.add(value);
    else if (value && typeof value === "object") Object.values(value).forEach(look);
  };
  look([event.deal, event.news, event.question, event.value]);
  return cards;
}

function picture(game, state, players, view) {
  const box = place();
  render(html`<${games[game].Table} state=${state} players=${players} view=${view} />`, box);
  return box;
}

for (const match of matches) {
  const { name, players, view, rounds } = match;
  const game = match.drawn; // by its own view, or by the general one
  const ends = (event) => isEnd(event, games[game]);

  // What a round of it brings is points, and the scores are games.
  const { isAsScored } = match;
  if (isAsScored) test(`${name}: scores at the end of every round are the arena's`, () => {
    const replay = stepsOf(match);
    for (const { round, scores } of rounds) assert.deepEqual(replay.steps(round).at(-1).state.scores, scores, `round ${round}`);
  });

  test(`${name}: every step has words and can be drawn, with every name on it`, () => {
    const replay = stepsOf(match);
    for (const { round } of rounds) {
      replay.steps(round).forEach((step, at) => {
        const { text } = picture(game, step.state, players, view);
        assert.equal(Boolean(step.text), at > 0);
        assert.doesNotMatch(text + step.text, /undefined|NaN|\[object|null/);
        for (const player of players) assert.ok(text.includes(player));
      });
    }
  });

  test(`${name}: no card is shown before an event has named it`, () => {
    const { settings } = match;
    let state = games[game].start({ settings, players, view });
    // A deck lasts for several hands; where it is cut, the cuts name its cards.
    const lasts = game === "blackjack" && view.kind === "all";
    let named = new Set();
    for (const { events } of rounds) {
      if (!lasts) named = new Set();
      if (lasts && events.some(({ deal }) => typeof deal === "number")) return;
      for (const event of events) {
        cardsOf(event).forEach((card) => named.add(card));
        state = games[game].step(state, event);
        for (const card of cardsIn(picture(game, state, players, view))) assert.ok(named.has(card), `${card} comes from nowhere`);
      }
    }
  });

  test(`${name}: to the end and back it is the same, wherever one begins`, () => {
    const forth = stepsOf(match);
    const seen = rounds.map(({ round }) => structuredClone(forth.steps(round)));
    assert.deepEqual(rounds.toReversed().map(({ round }) => forth.steps(round)).reverse(), seen);
    const back = stepsOf(match, rounds.map(({ round }) => round).reverse());
    assert.deepEqual(rounds.toReversed().map(({ round }) => back.steps(round)).reverse(), seen);
    const middle = Math.ceil(rounds.length / 2);
    assert.deepEqual(stepsOf(match, [middle]).steps(middle).map(({ text }) => text), seen[middle - 1].map(({ text }) => text));
  });

  test(`${name}: told in one go it comes to the same as told by rounds`, () => {
    const { settings } = match;
    const replay = stepsOf(match);
    let state = games[game].start({ settings, players, view });
    for (const { round, events } of rounds) {
      for (const event of events) state = games[game].step(state, event);
      assert.deepEqual(state, replay.steps(round).at(-1).state);
    }
  });

  test(`${name}: a stream, cut anywhere, gives the rounds of the record`, () => {
    const scene = { ...match, round: 1, scores: players.map(() => 0) };
    const live = new Live(games[game], scene);
    let number = 7;
    const all = rounds.flatMap(({ round, events, scores }, at) => events.map((event) => ({ event, round, after: scores, before: rounds[at - 1]?.scores ?? scene.scores })));
    for (let at = 0; at < all.length; ) {
      number = (number * 1103515245 + 12345) % 2147483648;
      const part = all.slice(at, at + 1 + (number % 23));
      const last = part.at(-1);
      const ended = all[at + part.length]?.round !== last.round || part.some(({ event, round }) => round === last.round && ends(event));
      live.feed({ match: "m", reset: at === 0, round: part[0].round, events: part.map(({ event }) => event), turn: null, scores: ended ? last.after : last.before, decisions: at, skipped: 0 }, at);
      at += part.length;
    }
    assert.equal(live.newest, rounds.length);
    const replay = stepsOf(match);
    for (let round = live.oldest; round <= live.newest; round++) assert.deepEqual(live.match.steps(round).map(({ text }) => text), replay.steps(round).map(({ text }) => text));
    let at = { round: live.oldest, step: 0 };
    for (let steps = 0; at; steps++) {
      assert.ok(steps < 10_000, "whoever follows comes to the end");
      const next = live.next(at.round, at.step);
      if (!next) break;
      at = next;
    }
    assert.equal(at.round, live.newest);
  });

  test(`${name}: who comes in the middle of a round is where it is`, () => {
    const live = new Live(games[game], { ...match, round: 1, scores: players.map(() => 0) });
    assert.equal(live.next(1, 0), null);
    const { events } = rounds[0];
    live.feed({ match: "m", reset: true, round: 1, events: events.slice(0, events.findIndex(ends)), turn: null, scores: players.map(() => 0), decisions: 1, skipped: 0 }, 0);
    const last = live.match.steps(1).length - 1;
    assert.equal(live.next(1, last), null);
  });

  test(`${name}: rounds that were skipped leave the rest right`, () => {
    const live = new Live(games[game], { ...match, round: 1, scores: players.map(() => 0) });
    const picked = rounds.filter(({ round }) => round % 3 === 0);
    for (const { round, events, scores } of picked) {
      live.feed({ match: "m", reset: true, round, events, turn: null, scores, decisions: round, skipped: 2 }, round);
      assert.equal(live.newest, round);
      if (isAsScored) assert.deepEqual(live.match.steps(round).at(-1).state.scores, scores);
    }
    assert.equal(live.skipped, 2 * picked.length);
  });

  if (game === "blackjack" && view.kind === "all") {
    test(`${name}: the card that lies face down is seen, and it is the one that is turned over`, () => {
      const replay = stepsOf(match);
      let turned = 0;
      for (const { round, events } of rounds) {
        if (!events.some(ends)) continue; // cut short
        const [first, hole] = events.find(ends).news.dealer;
        const down = replay.steps(round).map(({ state }) => state).find(({ player, dealer }) => player.length === 2 && dealer.length === 1);
        const shown = cardsIn(picture(game, down, players, view));
        assert.equal(shown.length, 4);
        assert.ok(shown.includes(first));
        for (const kind of ["public", "seat"]) assert.equal(cardsIn(picture(game, down, players, { kind, seats: [0] })).length, 3);
        if (!hole) continue;
        turned += 1;
        assert.ok(shown.includes(hole));
      }
      assert.ok(turned > 0);
    });
  }

  if (game === "three_card_poker" && view.kind === "all") {
    test(`${name}: the dealer's hand is seen before it is turned over`, () => {
      for (const { round, events } of rounds) {
        const { state } = stepsOf(match).steps(round)[1];
        if (!events.some(ends)) continue; // cut short
        for (const card of events.find(ends).news.dealer) assert.ok(cardsIn(picture(game, state, players, view)).includes(card));
      }
    });
  }

  if (view.kind === "all") {
    test(`${name}: every question has its moves, by button and by key`, async () => {
      const kinds = new Map();
      for (const { events } of rounds) for (const event of events) if (event.event === "asked" && !kinds.has(event.question.kind)) kinds.set(event.question.kind, event);
      for (const { seat, question } of kinds.values()) {
        const answers = [];
        const box = place();
        const state = { ...games[game].start({ settings: match.settings, players, view }), turn: { seat, kind: question.kind } };
        render(html`<${games[game].Moves} question=${question} state=${state} onAnswer=${(value) => answers.push(value)} />`, box);
        await settled();
        const buttons = box.all((node) => node.localName === "button");
        const keys = buttons.map((node) => node.attributes["aria-keyshortcuts"]).filter(Boolean);
        assert.equal(new Set(keys).size, keys.length, "no key means two things");
        if (game === "gin_rummy" && question.kind === "turn") await discards(box, question, answers);
        else if (Array.isArray(question.legal)) {
          for (const button of buttons) button.click();
          assert.deepEqual(answers, question.legal);
          for (const key of keys) press(key);
          assert.deepEqual(answers, [...question.legal, ...question.legal]);
        } else {
          press("Enter");
          assert.ok(answers[0] >= question.legal.min && answers[0] <= question.legal.max);
        }
        render(null, box);
      }
    });
  }
}

async function discards(box, question, answers) {
  const cards = box.all((node) => node.localName === "button" && node.attributes.class === "pick");
  assert.equal(cards.length, question.hand.length);
  press("d");
  assert.deepEqual(answers, [], "nothing is chosen yet");
  cards[3].click();
  await settled();
  press("d");
  assert.equal(answers.length, 1);
  assert.ok(question.legal.some((each) => !each.knock && each.discard === answers[0].discard));
}

test("hands are arranged with no more deadwood than the arena's", () => {
  for (const { hand, deadwood } of hands) assert.equal(arrange(hand).deadwood, deadwood, hand.join(" "));
});

test("a record is fetched in pages, the next before it is needed, and none twice", async () => {
  const [match] = matches;
  const asked = [];
  const fetched = (from, to) => {
    asked.push([from, to]);
    return Promise.resolve({ rounds: Array.from({ length: to - from + 1 }, (_, at) => ({ ...match.rounds[0], round: from + at })) });
  };
  const record = new Record(games[match.drawn], { ...match, rounds: Array(1000).fill(match.rounds[0].scores) }, fetched, () => {});
  record.want(1);
  record.want(1);
  await settled();
  assert.deepEqual(asked, [[1, 40]]);
  record.want(35);
  await settled();
  assert.deepEqual(asked.at(-1), [41, 80]);
  for (let round = 1; round <= 1000; round += 20) {
    record.want(round);
    await new Promise(setImmediate);
    assert.ok(record.match.has(round));
  }
  assert.ok(record.match.rounds.size <= 13 * 40, "what was left behind is forgotten");
});

test("a page that cannot be fetched says so, and is asked for again", async () => {
  const [match] = matches;
  let fails = true;
  const fetched = () => (fails ? Promise.reject(new Error("the arena is away")) : Promise.resolve({ rounds: match.rounds }));
  const record = new Record(games[match.drawn], { ...match, rounds: [[0, 0]] }, fetched, () => {});
  record.want(1);
  await settled();
  assert.equal(record.error.message, "the arena is away");
  fails = false;
  record.again();
  record.want(1);
  await settled();
  assert.ok(record.match.has(1));
});
