import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';
import { anyLegal, Session } from './session.js';
import { commitment, deals, matchKey } from './cards.js';
import { HighLow } from './high_low.js';

const BOT = fileURLToPath(new URL('bot.js', import.meta.url));
const VECTORS = new URL('../../../protocol/vectors/cards.json', import.meta.url);
const MATCH = { type: 'match', match: 'm', game: 'ace_king_queen', seat: 0 };
const ask = (number, news = []) => ({
  type: 'ask',
  match: 'm',
  ask: `m:${number}`,
  kind: 'open',
  round: number,
  card: 'A',
  legal: ['bet', 'check'],
  news,
});

function sessionOf(player) {
  const session = new Session({ name: 'ann', games: ['ace_king_queen'] }, () => player, { makeNonce: () => 'nonce' });
  session.receive({ type: 'welcome', session: 'secret' });
  session.receive(MATCH);
  return session;
}

test('any answer of a list, any number of a range', () => {
  const many = (legal) => new Set(Array.from({ length: 200 }, () => anyLegal(legal)));
  assert.deepEqual(many(['bet', 'check']), new Set(['bet', 'check']));
  assert.deepEqual([...many({ min: 5, max: 7 })].sort(), [5, 6, 7]);
  assert.deepEqual(many({ min: 3, max: 3 }), new Set([3]));
  for (const number of many({ min: 1, max: 1e12 })) {
    assert.ok(Number.isInteger(number) && number >= 1 && number <= 1e12);
  }
});

test('a question that comes again is answered again, and its news are heard once', () => {
  const heard = [];
  const values = ['bet', 'check'];
  const session = sessionOf({ decide: () => values.shift(), hear: (news) => heard.push(news) });

  const first = session.receive(ask(1, ['news']));
  const again = session.receive(ask(1, ['news']));

  assert.deepEqual(first, [{ type: 'answer', match: 'm', ask: 'm:1', value: 'bet' }]);
  assert.deepEqual(again, first);
  assert.deepEqual(heard, ['news']);
});

test('a lost connection costs nothing, a forgotten session everything', () => {
  let players = 0;
  const session = new Session({ name: 'ann' }, () => (players++, {}));
  session.receive({ type: 'welcome', session: 'secret' });
  const [ready] = session.receive(MATCH);
  assert.equal(session.hello().resume, 'secret');
  assert.deepEqual(session.receive(MATCH), [ready]);
  assert.equal(players, 1);

  session.receive({ type: 'refused', code: 'session', text: '' });
  assert.ok(session.forgotten && !session.unwelcome);
  assert.ok(!('resume' in session.hello()));
  assert.notDeepEqual(session.receive(MATCH), [ready]);
  assert.equal(players, 2);
});

test('an answer that is refused in practice is replaced by a legal one', () => {
  const session = sessionOf({ decide: () => 'raise' });
  session.receive(ask(1));
  const [answer] = session.receive({ type: 'refused', code: 'illegal', match: 'm', ask: 'm:1', legal: ['check'] });
  assert.deepEqual(answer, { type: 'answer', match: 'm', ask: 'm:1', value: 'check' });
  assert.ok(!session.unwelcome);
});

test('what is over is forgotten, and a message that there is not in version 1 is an error', () => {
  const session = sessionOf({ decide: () => 'bet' });
  const over = { type: 'over', match: 'm', news: [] };
  assert.deepEqual(session.receive(over), []);
  assert.deepEqual(session.receive(over), []);
  assert.deepEqual(session.receive(ask(1)), []);
  assert.throws(() => session.receive({ type: 'gossip' }), /no message of type gossip/);
});

test('high-low: extreme cards are kept and bid on, middling ones are not', () => {
  const player = new HighLow({ seat: 0 });
  player.hear({ kind: 'dealt', shuffle: 1, round: 1, starter: 0, card: 'As', dealer_card: '8d' });
  assert.equal(player.decide({ kind: 'swap', card: 'As', dealer_card: '8d' }), 'keep');
  assert.equal(player.decide({ kind: 'swap', card: '8d', dealer_card: 'As' }), 'swap');
  const question = { kind: 'bid', bids: [null, null, null, null], legal: ['quit', 2, 4, 6, 8, 10] };
  assert.notEqual(player.decide({ ...question, card: 'As' }), 'quit');
  assert.equal(player.decide({ ...question, card: '8d', bids: [null, 10, 10, 10], legal: ['quit', 10] }), 'quit');
});

const elsewhere = !existsSync(VECTORS) && 'there are no vectors outside of the repository';
test('the cards are those of protocol/vectors/cards.json', { skip: elsewhere }, () => {
  for (const vector of JSON.parse(readFileSync(VECTORS))) {
    const seed = Buffer.from(vector.seed, 'hex');
    const key = matchKey(seed, vector.nonces);
    assert.equal(commitment(seed), vector.commitment);
    assert.equal(key.toString('hex'), vector.key);
    for (const game of ['ace_king_queen', 'gin_rummy', 'high_low', 'three_card_poker']) {
      assert.deepEqual(deals(game, {}, key, vector[game].length), vector[game]);
    }
    for (const shuffle of ['riffle', 'uniform']) {
      const expected = vector[`blackjack_${shuffle}`].flat(shuffle === 'riffle' ? 1 : 0);
      assert.deepEqual(deals('blackjack', { shuffle }, key, expected.length), expected);
    }
  }
});

test('the program comes back after a lost connection, and ends with the arena', { timeout: 10_000 }, async () => {
  const arena = new WebSocketServer({ port: 0 });
  await once(arena, 'listening');
  const bot = spawn(process.execPath, [BOT], {
    env: { ...process.env, ARENA_URL: `ws://127.0.0.1:${arena.address().port}`, ARENA_NAME: 'ann' },
    stdio: 'inherit',
  });
  try {
    const [first] = await once(arena, 'connection');
    const [hello] = await once(first, 'message');
    assert.equal(JSON.parse(hello).name, 'ann');
    first.send(JSON.stringify([{ type: 'welcome', session: 'secret' }, MATCH, ask(1)]));
    const [replies] = await once(first, 'message');
    const types = JSON.parse(replies).map(({ type }) => type);
    assert.deepEqual(types, ['ready', 'answer']);
    first.terminate();

    const [second] = await once(arena, 'connection');
    const [resume] = await once(second, 'message');
    assert.equal(JSON.parse(resume).resume, 'secret');
    second.close(1000);
    assert.deepEqual(await once(bot, 'exit'), [0, null]);
  } finally {
    bot.kill();
    arena.close();
  }
});
