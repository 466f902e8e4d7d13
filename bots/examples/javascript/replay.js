// Replays transcripts offline: node replay.js ../../../protocol/vectors/transcripts/*.jsonl
//
// The session of session.js plays the bot's side once more, and has to say exactly what the bot has said. The cards are drawn
// again from the seed and the nonces, every answer must have been legal, and the rounds must add up to the result.

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Session } from './session.js';
import { commitment, deals, matchKey } from './cards.js';
import { expectSame, inFull, isLegal, watch } from './referee.js';

/** @throws {Error} where the transcript is not what it should be */
function replay(text) {
  const [heading, ...lines] = text.split('\n').filter(Boolean).map(parse);
  expectSame('transcript', 1, heading.transcript);
  checkCards(heading, lines);
  checkReplies(lines);
  const answers = checkMatch(heading, lines);
  return { game: heading.game, answers, scores: heading.scores };
}

/** JSON, but for an answer such as `10.0`, which is no whole number on the wire and would be one here. */
const parse = (line) => JSON.parse(line.replace(/"value":(-?\d+\.\d+)/, '"value":{"float":"$1"}'));

/** The seed is what was promised, and the cards come from it and the nonces. */
function checkCards({ game, settings, seat, seed, nonces, decks }, lines) {
  const bytes = Buffer.from(seed, 'hex');
  for (const { arena, bot } of lines) {
    if (arena?.type === 'match') expectSame('commitment', commitment(bytes), arena.commitment);
    if (arena?.type === 'over') expectSame('reveal', { seed, nonces }, arena.reveal);
    if (bot?.type === 'ready') expectSame('nonce', nonces[seat], bot.nonce);
  }
  expectSame('decks', deals(game, settings, matchKey(bytes, nonces), decks.length), decks);
}

/** The session says what the bot has said, if its player decides the same. */
function checkReplies(lines) {
  let session = null;
  let secret = null; // what a program that is killed has kept in a file
  let recorded; // what the bot has said to the latest message
  const replies = [];

  const start = ({ type, protocol, resume, ...greeting }) => {
    const player = { decide: () => recorded.value };
    const chance = { makeNonce: () => recorded.nonce, choose: () => recorded.value };
    return Object.assign(new Session(greeting, () => player, chance), { secret });
  };

  lines.forEach(({ arena, bot, event }, at) => {
    if (arena) {
      recorded = replyTo(arena, lines.slice(at + 1));
      // What is due an answer and got none is what the bot did not live to read.
      if (recorded || !['match', 'ask'].includes(arena.type)) replies.push(...session.receive(arena));
    } else if (bot) {
      if (bot.type === 'hello') {
        session ??= start(bot);
        replies.push(session.hello());
      }
      const { note, ...said } = bot; // a note is the player's own
      expectSame(`line ${at + 2}`, replies.shift(), said);
    } else if (event === 'program killed') {
      secret = session.secret;
      session = null;
    }
  });
  expectSame('replies', [], replies);
}

/** The next thing that the bot says to a message, if there is one before anything happens to it. */
function replyTo({ type, match, ask }, lines) {
  const end = lines.findIndex((line) => line.event);
  const ahead = end < 0 ? lines : lines.slice(0, end);
  const reply = type === 'match' ? 'ready' : 'answer';
  return ahead.find(({ bot }) => bot?.type === reply && bot.match === match && bot.ask === ask)?.bot;
}

/** Answers were legal, cards were those that were dealt, and the rounds add up; returns how many answers were given. */
function checkMatch(heading, lines) {
  const match = watch(heading);
  const questions = new Map(); // by their ids
  const given = new Map(); // answers by the ids of their questions

  lines.forEach(({ arena, bot }, at) => {
    if (arena?.type === 'ask' && !questions.has(arena.ask)) {
      questions.set(arena.ask, arena);
      arena.news.forEach((news) => match.heard(news));
      match.asked(arena);
    } else if (arena?.type === 'past') {
      expectSame('answer in past', given.get(arena.ask), arena.answer);
    } else if (arena?.type === 'over') {
      arena.news.forEach((news) => match.heard(news));
      checkEnd(heading, match, arena, questions.size > given.size);
    } else if (bot?.type === 'answer') {
      const legal = isLegal(questions.get(bot.ask), bot.value);
      expectSame(`line ${at + 2} has a legal answer`, !isRefused(bot, lines.slice(at + 1)), legal);
      if (legal) given.set(bot.ask, inFull(bot.value));
    }
  });
  expectSame('the last message', 'over', lines.at(-1)?.arena?.type);
  checkAnswers([...given.values()], heading.answers);
  return given.size;
}

/** Whether an answer is refused in practice, or ends the match. */
function isRefused({ match, ask }, lines) {
  const next = lines.find((line) => line.arena)?.arena;
  if (next?.match !== match) return false;
  return next.type === 'refused' ? next.ask === ask : next.verdict?.kind === 'illegal';
}

/** The match ended as the heading says and as it can have ended, with the scores that the rounds add up to. */
function checkEnd({ seat, settings, scores, termination }, match, over, isAsked) {
  const { kind, seat: blamed } = termination;
  expectSame('played to its end', match.isOver, kind === 'completed');
  if (kind === 'illegal') expectSame('the seat whose answer was illegal was asked', isAsked, blamed === seat);
  if (over.verdict) expectSame('verdict', kind, over.verdict.kind);
  expectSame('termination', { kind, seat: blamed }, { kind: over.termination.kind, seat: over.termination.seat });
  // Against the dealer an offence costs the whole stake.
  const stake = settings.stake ?? settings.bankroll;
  const left = blamed === seat && stake !== undefined ? [-stake] : match.scores;
  expectSame('scores', left, over.scores);
  expectSame('scores of the heading', left, scores);
}

/** This seat's answers are among those of all seats, in the same order. */
function checkAnswers(given, all) {
  let place = 0;
  for (const value of given) {
    const found = all.slice(place).findIndex((one) => isDeepStrictEqual(one, value));
    if (found < 0) throw new Error(`answers: expected ${JSON.stringify(value)} among ${JSON.stringify(all)}`);
    place += found + 1;
  }
}

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node replay.js FILE…');
  process.exitCode = 2;
}
for (const file of files) {
  try {
    console.log(JSON.stringify({ file, ...replay(readFileSync(file, 'utf8')) }));
  } catch (error) {
    console.error(`${file}: ${error.message}`);
    process.exitCode = 1;
  }
}
