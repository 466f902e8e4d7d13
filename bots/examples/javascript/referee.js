// What one seat can check of a match without all of the rules: that its answers were legal, that the cards it saw are those
// that were dealt, that the scores are what the rounds add up to, and whether the match was played to its end.

import { isDeepStrictEqual } from 'node:util';
import { NEW_DECK, riffled } from './cards.js';

/** @throws {Error} with both in it, if they are not the same */
export function expectSame(what, expected, got) {
  if (isDeepStrictEqual(expected, got)) return;
  const [wanted, found] = [expected, got].map((one) => JSON.stringify(one));
  throw new Error(`${what}: expected ${wanted}, got ${found}`);
}

/** An answer with what may be left out of it: in gin rummy `knock` and `melds`. */
export const inFull = (value) => (value?.discard ? { knock: false, melds: null, ...value } : value);

/** Whether a question may be answered so. */
export function isLegal({ kind, hand, legal }, value) {
  if (!Array.isArray(legal)) return Number.isInteger(value) && legal.min <= value && value <= legal.max;
  const full = inFull(value);
  if (legal.some((one) => isDeepStrictEqual(one, full))) return true;
  // Gin rummy: a seat may declare melds of its own instead of null.
  if (kind === 'melds') return areMelds(value, hand);
  if (kind !== 'turn' || !legal.some((one) => isDeepStrictEqual(one, { ...full, melds: null }))) return false;
  const kept = hand.filter((card) => card !== full.discard);
  return full.knock && areMelds(full.melds, kept) && deadwood(kept, full.melds) <= 10;
}

const RANKS = 'A23456789TJQK'; // the ace is low
const rank = (card) => RANKS.indexOf(card[0]);

function areMelds(melds, hand) {
  const cards = melds.flat();
  const allInHand = cards.every((card) => hand.includes(card)) && new Set(cards).size === cards.length;
  return allInHand && melds.every((meld) => meld.length >= 3 && (isSet(meld) || isRun(meld)));
}

const isSet = (meld) => meld.every((card) => card[0] === meld[0][0]);

function isRun(meld) {
  const ranks = meld.map(rank).sort((a, b) => a - b);
  return meld.every((card) => card[1] === meld[0][1]) && ranks.every((one, i) => one === ranks[0] + i);
}

function deadwood(hand, melds) {
  const melded = new Set(melds.flat());
  return hand.filter((card) => !melded.has(card)).reduce((sum, card) => sum + Math.min(rank(card) + 1, 10), 0);
}

const plus = (a, b) => a.map((one, i) => one + b[i]);

/**
 * Follows one seat's match; `asked` and `heard` are for its questions and its news in order, `scores` is by seat, and
 * `isOver` says whether by the rules there is no round more.
 *
 * @param heading of a transcript
 * @throws {Error} from `asked` and `heard`, where something is not as it was dealt, or does not add up
 */
export const watch = (heading) => new WATCHES[heading.game](heading);

class Watch {
  constructor({ seat, settings, players, decks }) {
    Object.assign(this, { seat, settings, decks });
    this.scores = players.map(() => 0);
    this.played = 0; // rounds; in gin rummy games
  }

  asked() {}

  add(payoffs, scores) {
    this.played++;
    this.scores = plus(this.scores, payoffs);
    expectSame('scores', this.scores, scores);
  }
}

class AceKingQueen extends Watch {
  get isOver() {
    return this.played === this.settings.hands;
  }

  asked({ round, card }) {
    expectSame('card', this.decks[round - 1][this.seat], card);
  }

  heard({ round, cards, payoffs, scores }) {
    expectSame('cards', this.decks[round - 1].slice(0, 2), cards);
    this.add(payoffs, scores);
  }
}

class GinRummy extends Watch {
  #dealt = 0;
  #hand;
  #stock; // what is left of it
  #pile; // the card on top of it
  #points = [0, 0];

  get isOver() {
    return this.played === this.settings.games;
  }

  asked({ kind, hand, drawn, upcard, discard }) {
    if (kind === 'turn') {
      expectSame('drawn card is one of two', true, [this.#stock[0], this.#pile].includes(drawn));
      this.#hand = [...this.#hand, drawn];
    } else if (kind !== 'melds') {
      expectSame('top of the pile', this.#pile, upcard ?? discard);
    }
    expectSame('hand', this.#hand, hand);
  }

  heard(news) {
    switch (news.kind) {
      case 'dealt': {
        const { starter, deck } = this.decks[this.#dealt++];
        this.#hand = deck.slice(10 * this.seat, 10 * this.seat + 10);
        this.#pile = deck[20];
        this.#stock = deck.slice(21);
        if (news.round === 1) expectSame('starter', this.settings.starter ?? starter, news.starter);
        expectSame('hand', this.#hand, news.hand);
        expectSame('up-card', this.#pile, news.upcard);
        break;
      }
      case 'turn':
        if (news.drew === 'stock') this.#stock.shift();
        else expectSame('card', this.#pile, news.card);
        if (news.seat === this.seat) this.#hand = this.#hand.filter((card) => card !== news.discarded);
        this.#pile = news.discarded;
        break;
      case 'round_over':
        expectSame('hand', this.#hand, news.hands[this.seat]);
        this.#points = plus(this.#points, news.points);
        expectSame('scores', this.#points, news.scores);
        break;
      case 'game_over':
        expectSame('scores', this.#points, news.scores);
        this.#points = [0, 0];
        this.add([news.winner === 0 ? 1 : 0, news.winner === 1 ? 1 : 0], news.games);
        break;
    }
  }
}

class HighLow extends Watch {
  #five; // the cards of the round, the dealer-card last

  get isOver() {
    const { gap, max_shuffles: most } = this.settings;
    const shuffles = this.played / 10;
    const [, second, third] = [...this.scores].sort((a, b) => b - a);
    if (!Number.isInteger(shuffles)) return false;
    return shuffles < most ? second - third >= gap : second !== third || shuffles === most + 10;
  }

  asked({ card, dealer_card: dealerCard }) {
    this.#expectSeen(card, dealerCard);
  }

  heard(news) {
    switch (news.kind) {
      case 'dealt': {
        const first = ((news.round - 1) % 10) * 5;
        this.#five = this.decks[news.shuffle - 1].slice(first, first + 5);
        this.#expectSeen(news.card, news.dealer_card);
        break;
      }
      case 'swapped':
        if (news.swapped) {
          [this.#five[news.seat], this.#five[4]] = [this.#five[4], this.#five[news.seat]];
        }
        expectSame('dealer-card', this.#five[4], news.dealer_card);
        break;
      case 'round_over':
        // Those who quit show nothing.
        news.cards.forEach((card, seat) => card && expectSame('card', this.#five[seat], card));
        this.add(news.payoffs, news.scores);
        break;
    }
  }

  #expectSeen(card, dealerCard) {
    expectSame('card and dealer-card', [this.#five[this.seat], this.#five[4]], [card, dealerCard]);
  }
}

class ThreeCardPoker extends Watch {
  #deck;

  get isOver() {
    const { stake, rounds, goal } = this.settings;
    const cash = stake + this.scores[0];
    return this.played === rounds || cash < 2 || (goal !== null && cash >= goal);
  }

  asked({ kind, round, hand, cash }) {
    if (kind === 'ante') this.#deck = this.decks[round - 1];
    else expectSame('hand', this.#deck.slice(0, 3), hand);
    expectSame('cash', this.settings.stake + this.scores[0], cash);
  }

  heard({ hand, dealer, ante, outcome, cash }) {
    expectSame('hands', this.#deck, [...hand, ...dealer]);
    this.add([outcome * ante], [cash - this.settings.stake]);
  }
}

class Blackjack extends Watch {
  #deals = this.decks.values();
  #deck = NEW_DECK;
  #next = 0;
  #hole;
  #hands = { player: [], dealer: [] }; // as far as they can be seen

  get isOver() {
    const { bankroll, hands } = this.settings;
    return this.played === hands || bankroll + this.scores[0] < 5;
  }

  asked({ kind, bankroll, hand, upcard }) {
    if (kind === 'bet') expectSame('bankroll', this.settings.bankroll + this.scores[0], bankroll);
    else expectSame('hand and up-card', [this.#hands.player, this.#hands.dealer[0]], [hand, upcard]);
  }

  heard(news) {
    switch (news.kind) {
      case 'shuffled':
        this.#shuffle();
        break;
      case 'exposed':
        this.#hands[news.to].push(news.card);
        expectSame('card', this.#exposed(news.to), news.card);
        break;
      case 'hand_over':
        expectSame('hands', this.#hands, { player: news.player, dealer: news.dealer });
        this.#hands = { player: [], dealer: [] };
        this.add([news.payoff], [news.bankroll - this.settings.bankroll]);
        break;
    }
  }

  #shuffle() {
    this.#next = 0;
    if (this.settings.shuffle === 'uniform') {
      this.#deck = this.#deals.next().value;
    } else {
      for (let cuts = 0; cuts < 7; cuts++) this.#deck = riffled(this.#deck, this.#deals.next().value);
    }
  }

  /** The card that could be seen just now: player, dealer, player, and face down one that the dealer shows at its turn. */
  #exposed(to) {
    const { player, dealer } = this.#hands;
    if (to === 'dealer' && dealer.length === 2) return this.#hole;
    const card = this.#deck[this.#next++];
    if (player.length + dealer.length === 3) this.#hole = this.#deck[this.#next++];
    return card;
  }
}

const WATCHES = {
  ace_king_queen: AceKingQueen,
  gin_rummy: GinRummy,
  high_low: HighLow,
  three_card_poker: ThreeCardPoker,
  blackjack: Blackjack,
};
