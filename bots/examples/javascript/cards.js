// Where the cards come from: the chapter of that name in protocol/cards_and_records.md, in JavaScript.

import { createHash } from 'node:crypto';

const RANKS = [...'23456789TJQKA'];
const inOrder = (suits) => [...suits].flatMap((suit) => RANKS.map((rank) => rank + suit));

/** The 52 cards before they are shuffled; blackjack's new deck has its suits in another order. */
export const PACK = inOrder('shdc');
export const NEW_DECK = inOrder('shcd');

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();

/** What `match` says of the seed, in hex. */
export const commitment = (seed) => sha256(seed).toString('hex');

/** The key of a match: its seed, and each nonce behind its length. */
export function matchKey(seed, nonces) {
  const parts = nonces.flatMap((nonce) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(Buffer.byteLength(nonce));
    return [length, nonce];
  });
  return sha256(seed, ...parts);
}

/** All that is random in a match, drawn from its key in the order in which it is needed. */
export class Stream {
  #bytes;

  constructor(key) {
    this.#bytes = bytes(key);
  }

  nextByte() {
    return this.#bytes.next().value;
  }

  /** A number from 0 to n - 1, each equally likely. */
  below(n) {
    for (;;) {
      const byte = this.nextByte();
      if (byte < 256 - (256 % n)) return byte % n;
    }
  }

  /** The cards in random order; with `steps`, after that many steps of the shuffle. */
  shuffled(cards, steps = cards.length - 1) {
    const deck = [...cards];
    for (let i = deck.length - 1; steps > 0; i--, steps--) {
      const other = this.below(i + 1);
      [deck[i], deck[other]] = [deck[other], deck[i]];
    }
    return deck;
  }
}

function* bytes(key) {
  for (let block = 0n; ; block++) {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(block);
    yield* sha256(key, counter);
  }
}

const DEALS = {
  ace_king_queen: (stream) => stream.shuffled(['A', 'K', 'Q']),
  gin_rummy: (stream) => ({ starter: stream.below(2), deck: stream.shuffled(PACK) }),
  high_low: (stream) => stream.shuffled(PACK),
  three_card_poker: (stream) => stream.shuffled(PACK, 6).slice(-6).reverse(),
  blackjack: (stream, { shuffle }) => (shuffle === 'riffle' ? 13 + stream.below(27) : stream.shuffled(NEW_DECK)),
};

/** The first deals of a match, as in the heading of a transcript. */
export function deals(game, settings, key, count) {
  const stream = new Stream(key);
  return Array.from({ length: count }, () => DEALS[game](stream, settings));
}

/** A riffle: the first `cut` cards are the left part; right, left, right, left … and then what remains of the longer one. */
export function riffled(deck, cut) {
  const [left, right] = [deck.slice(0, cut), deck.slice(cut)];
  return deck.flatMap((_, i) => [right[i], left[i]].filter(Boolean));
}
