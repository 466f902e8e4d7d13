// The plumbing between a bot and the arena. It knows no game.
//
// `Session` turns each message of the arena into the bot's replies and does no I/O, so that it can be tested and replayed
// without an arena. `play` gives it a WebSocket, and another one whenever the connection is lost.

import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const PATIENCE_MS = 60_000;
const SILENCE_MS = 30_000; // who has not answered `hello` by then is no arena

const DONE = 1000;
const CRASHED = 1011;
// After these it is no use to come back; after any other, or none at all, the arena will be there again.
const FINAL = new Set([1002, 1009, 4000, 4001]);

/** A random legal answer, from a list of answers or a range `{min, max}` of whole numbers. */
export function anyLegal(legal) {
  if (Array.isArray(legal)) return legal[randomInt(legal.length)];
  const numbers = Math.min(legal.max - legal.min + 1, Number.MAX_SAFE_INTEGER);
  return legal.min + Math.floor(Math.random() * numbers);
}

/** One bot's side of the conversation: all its matches, over any number of connections. */
export class Session {
  /** The secret of the latest `welcome`; null if there was none, or if the arena has forgotten it. */
  secret = null;
  /** Whether the arena has just said so: say `hello` once more, and begin anew. */
  forgotten = false;
  /** Whether the arena will not have this bot: there is no use in coming back. */
  unwelcome = false;

  #greeting;
  #makePlayer;
  #makeNonce;
  #choose;
  #seats = new Map(); // by the id of the match

  /**
   * @param greeting the fields of `hello` that the bot chooses: `name`, `games`, perhaps `token`, `tables`, `batch` …
   * @param makePlayer called with every new `match`; returns an object with `decide(question)` and perhaps `hear(news)`
   * @param chance what is drawn at random: `makeNonce()` for a match, `choose(legal)` after an answer that was refused
   */
  constructor(greeting, makePlayer, { makeNonce = randomUUID, choose = anyLegal } = {}) {
    this.#greeting = greeting;
    this.#makePlayer = makePlayer;
    this.#makeNonce = makeNonce;
    this.#choose = choose;
  }

  /** The first message on every connection. */
  hello() {
    this.forgotten = false;
    const resume = this.secret ? { resume: this.secret } : {};
    return { type: 'hello', protocol: 1, ...this.#greeting, ...resume };
  }

  /** What the bot says to one message of the arena: a list of messages, often an empty one. */
  receive(message) {
    return [this.#reply(message) ?? []].flat();
  }

  #reply(message) {
    const seat = this.#seats.get(message.match);
    switch (message.type) {
      case 'welcome':
        this.secret = message.session;
        return;
      case 'match':
        return this.#sitDown(message, seat);
      case 'ask':
        return seat && this.#answer(message, seat);
      case 'past':
        message.news.forEach((news) => seat?.player.hear?.(news));
        return;
      case 'over':
        message.news.forEach((news) => seat?.player.hear?.(news));
        this.#seats.delete(message.match);
        return;
      case 'refused':
        return this.#mend(message, seat);
      default:
        throw new TypeError(`version 1 has no message of type ${message.type}`);
    }
  }

  #sitDown(match, seat) {
    // After a lost connection the arena says `match` again: the player keeps its memory, and the first nonce stands.
    seat ??= { player: this.#makePlayer(match), nonce: this.#makeNonce() };
    this.#seats.set(match.match, seat);
    return { type: 'ready', match: match.match, nonce: seat.nonce };
  }

  #answer(question, seat) {
    // A question that comes again gets its answer again; its news are old.
    if (question.ask !== seat.ask) {
      question.news.forEach((news) => seat.player.hear?.(news));
      seat.value = seat.player.decide(question);
      if (seat.value === undefined) throw new TypeError(`decide returned nothing for ${question.kind}`);
      seat.ask = question.ask;
    }
    return { type: 'answer', match: question.match, ask: question.ask, value: seat.value };
  }

  #mend({ code, match, ask, legal }, seat) {
    if (seat && legal) {
      // Practice: the question still stands.
      seat.value = this.#choose(legal);
      return { type: 'answer', match, ask, value: seat.value };
    }
    if (code === 'session' && this.secret) {
      this.secret = null;
      this.forgotten = true;
      this.#seats.clear();
    } else {
      this.unwelcome = true;
    }
  }
}

/**
 * Plays until the arena closes. Where, and as whom, is in ARENA_URL, ARENA_TOKEN and ARENA_NAME.
 * What goes wrong is told on stderr, and makes the exit status 1.
 *
 * @param games the names of the games that the bot plays
 * @param makePlayer as for `Session`
 */
export async function play({ games, makePlayer }) {
  const { ARENA_URL = 'ws://127.0.0.1:7700', ARENA_TOKEN, ARENA_NAME = 'javascript' } = process.env;
  const greeting = {
    name: ARENA_NAME,
    games,
    tables: 8,
    batch: true,
    token: ARENA_TOKEN,
    client: 'card-arena example (javascript)',
  };
  try {
    const { WebSocket } = await import('ws'); // not above: a session has no use for it
    const connect = () => new WebSocket(ARENA_URL, { perMessageDeflate: false, handshakeTimeout: 10_000 });
    process.exitCode = await stay(connect, new Session(greeting, makePlayer));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** Holds the conversation, over as many connections as it takes; returns the exit status. */
async function stay(connect, session) {
  let pauseMs = FIRST_PAUSE_MS;
  let since = Date.now();
  for (;;) {
    const before = session.secret;
    const { code, reason, crashed } = await converse(connect(), session);
    if (crashed || session.unwelcome) return 1;
    if (code === DONE) return 0;
    if (!session.forgotten && FINAL.has(code)) throw new Error(`the arena closed with ${code}: ${reason}`);
    if (session.secret !== before) {
      pauseMs = FIRST_PAUSE_MS;
      since = Date.now();
    }
    if (Date.now() - since > PATIENCE_MS) throw new Error(`the arena is gone: ${reason}`);
    await sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

/** One connection, from `hello` to its end: how it was closed, and whether that was because the player failed. */
function converse(socket, session) {
  return new Promise((resolve) => {
    let failure;
    let silence;
    // If the network vanishes without a word, the kernel is to notice; we might wait for ever.
    socket.on('upgrade', (response) => response.socket.setKeepAlive(true, 5_000));
    socket.on('open', () => {
      socket.send(JSON.stringify(session.hello()));
      silence = setTimeout(() => socket.terminate(), SILENCE_MS);
    });
    socket.on('message', (data) => {
      clearTimeout(silence);
      if (socket.readyState !== socket.OPEN) return;
      try {
        const replies = [JSON.parse(data)].flat().flatMap((message) => {
          if (message.type === 'refused') console.error(`${message.code}: ${message.text}`);
          return session.receive(message);
        });
        // One frame for one frame: that is what `batch` is for.
        if (replies.length) socket.send(JSON.stringify(replies.length === 1 ? replies[0] : replies));
      } catch (error) {
        console.error(error);
        const reason = String(error).replace(/[^ -~]/g, '?');
        socket.close(CRASHED, reason.slice(0, 120)); // there is room for 123 bytes
        resolve({ crashed: true });
      }
    });
    socket.on('error', (error) => (failure = error));
    socket.on('close', (code, reason) => {
      clearTimeout(silence);
      resolve({ code, reason: String(reason) || failure?.message || 'no reason given' });
    });
  });
}
