// A bot's session with an arena. It knows no game.
//
// `Session` turns each message of the arena into the bot's replies. It does no I/O, so that it can be
// tested without an arena. `play` gives it a WebSocket, and a new one when the connection is lost.

import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const PATIENCE_MS = 60_000;
const SILENCE_MS = 30_000; // an arena answers `hello` within this time

const DONE = 1000;
const CRASHED = 1011;
// After these close codes the bot does not connect again.
const FINAL = new Set([1002, 1009, 4000, 4001]);

const STOPPED = 130; // the exit status after a signal

/** A random legal answer, from a list of answers or a range `{min, max}` of whole numbers. */
export function anyLegal(legal) {
  if (Array.isArray(legal)) return legal[randomInt(legal.length)];
  const numbers = Math.min(legal.max - legal.min + 1, Number.MAX_SAFE_INTEGER);
  return legal.min + Math.floor(Math.random() * numbers);
}

/** All matches of one bot, over any number of connections. */
export class Session {
  /** The secret of the latest `welcome`; null if there is none, or if the arena has forgotten it. */
  secret = null;
  /** Whether the arena has forgotten the session: say `hello` again, and begin a new one. */
  forgotten = false;
  /** Whether the arena refuses this bot: do not connect again. */
  unwelcome = false;
  /** Whether the bot leaves after the matches that are on. */
  leaving = false;
  /** What `welcome` says of `finish`; null without a connection, and after `goodbye`. */
  finish = null;

  #greeting;
  #makePlayer;
  #makeNonce;
  #choose;
  #seats = new Map(); // by the id of the match

  /**
   * @param greeting the fields of `hello` that the bot chooses: `name`, `games`, perhaps `token`, `tables` …
   * @param makePlayer called with every new `match`; returns an object with `decide(question)` and perhaps `hear(news)`
   * @param chance the random parts: `makeNonce()` for a match, `choose(legal)` after a refused answer
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

  /** How many matches are on. */
  get matches() {
    return this.#seats.size;
  }

  /**
   * A list with the `goodbye` that is due, once per connection. An arena that does not know `finish`
   * hears nothing while a match is on.
   */
  goodbye() {
    if (!this.leaving || this.finish === null || (this.matches && !this.finish)) return [];
    const finish = this.finish ? { finish: true } : {};
    this.finish = null;
    return [{ type: 'goodbye', ...finish }];
  }

  /** Handles one message of the arena; returns a list of replies, which is often empty. */
  receive(message) {
    return [this.#reply(message) ?? []].flat();
  }

  #reply(message) {
    const seat = this.#seats.get(message.match);
    switch (message.type) {
      case 'welcome':
        this.secret = message.session;
        this.finish = message.finish ?? false;
        return;
      case 'match':
        return this.#sitDown(message, seat);
      case 'ask':
        return seat && this.#answer(message, seat);
      case 'past':
        message.news.forEach((news) => seat?.player.hear?.(news));
        return;
      case 'over':
        if (message.standing) console.error(message.standing.text); // a competition is over
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
    // After a reconnect the arena repeats `match`: the player and the nonce stay the same.
    seat ??= { player: this.#makePlayer(match), nonce: this.#makeNonce() };
    this.#seats.set(match.match, seat);
    return { type: 'ready', match: match.match, nonce: seat.nonce };
  }

  #answer(question, seat) {
    // A question that comes again gets the same answer, and its news are old.
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
      // Practice mode: answer again.
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
 * Plays until the arena closes. ARENA_URL, ARENA_TOKEN and ARENA_NAME are the address, the token and
 * the name. An error is printed on stderr, and makes the exit status 1.
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
    const { WebSocket } = await import('ws'); // imported here, because `Session` does not need it
    const connect = () => new WebSocket(ARENA_URL, { perMessageDeflate: false, handshakeTimeout: 10_000 });
    process.exitCode = await stay(connect, new Session(greeting, makePlayer));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** Connects, and connects again until the session is over; returns the exit status. */
async function stay(connect, session) {
  let pauseMs = FIRST_PAUSE_MS;
  let since = Date.now();
  let socket;
  const leave = () => {
    if (session.leaving || session.finish === null) process.exit(STOPPED);
    session.leaving = true;
    console.error(`matches to finish: ${session.matches}; Ctrl-C again leaves now`);
    send(socket, session.goodbye());
  };
  process.on('SIGINT', leave).on('SIGTERM', leave);
  for (;;) {
    const before = session.secret;
    socket = connect();
    const { code, reason, crashed } = await converse(socket, session);
    if (crashed || session.unwelcome) return 1;
    if (code === DONE) return 0;
    if (!session.forgotten && FINAL.has(code)) throw new Error(`the arena closed with ${code}: ${reason}`);
    if (session.leaving && !session.matches) return 0;
    session.finish = null;
    if (session.secret !== before) {
      pauseMs = FIRST_PAUSE_MS;
      since = Date.now();
    }
    if (Date.now() - since > PATIENCE_MS) throw new Error(`the arena is gone: ${reason}`);
    await sleep(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  }
}

/** Serves one connection, from `hello` to its end; returns how it ended. */
function converse(socket, session) {
  return new Promise((resolve) => {
    let failure;
    let silence;
    // Let the kernel notice if the network is gone. Without that the bot might wait forever.
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
        send(socket, [...replies, ...session.goodbye()]);
      } catch (error) {
        console.error(error);
        const reason = `failed: ${error}`.replace(/[^ -~]/g, '?');
        socket.close(CRASHED, reason.slice(0, 120)); // at most 123 bytes
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

/** Sends all replies to one frame in one frame. */
function send(socket, replies) {
  if (replies.length) socket.send(JSON.stringify(replies.length === 1 ? replies[0] : replies));
}
