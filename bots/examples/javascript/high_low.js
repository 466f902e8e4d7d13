// Plays high-low by expected value.
//
// The value of a card is what it can expect of the pot against the unseen cards. Whether the others
// will stay, and how high they will bid, is estimated from their earlier bids.

const SEATS = 4;
const NUMBERS = [2, 4, 6, 8, 10];
const ORDER = [...'23456789TJQKA'].flatMap((rank) => [...'cdhs'].map((suit) => rank + suit));
const STRENGTH = new Map(ORDER.map((card, place) => [card, place]));

/** How far a card is from the middle of the order: 1 to 51. */
const extremity = (card) => Math.abs(2 * STRENGTH.get(card) - 51);

const product = (numbers) => numbers.reduce((a, b) => a * b, 1);

/**
 * What a stayer can expect to win or lose.
 *
 * @param below for each other stayer, how likely its card is below ours
 */
export function worth(below, lastBid) {
  const stayers = below.length + 1;
  const half = SEATS - stayers + (lastBid * stayers) / 2;
  const halves = product(below) + product(below.map((chance) => 1 - chance));
  return half * halves - lastBid;
}

export class HighLow {
  #seat;
  #habits = Array.from({ length: SEATS }, () => new Habits());
  #shuffle = 0;
  #unseen; // a Set of the cards that we have not seen in this shuffle
  #shown; // by seat: its card, if it swapped for the dealer-card, which all have seen
  #kept; // by seat: how extreme the dealer-card was that it did not take
  #dealerCard;
  #highest; // the highest number bid so far

  constructor(match) {
    this.#seat = match.seat;
  }

  decide(question) {
    if (question.kind === 'swap') {
      const { card, dealer_card: dealerCard } = question;
      return this.#expects(dealerCard) > this.#expects(card) ? 'swap' : 'keep';
    }
    return this.#bid(question);
  }

  hear(news) {
    switch (news.kind) {
      case 'dealt':
        if (news.shuffle !== this.#shuffle) this.#unseen = new Set(ORDER);
        this.#shuffle = news.shuffle;
        this.#strikeOff(news.card, news.dealer_card);
        this.#dealerCard = news.dealer_card;
        this.#shown = Array(SEATS).fill(null);
        this.#kept = Array(SEATS).fill(0);
        this.#highest = 2;
        break;
      case 'swapped':
        if (news.swapped) this.#shown[news.seat] = this.#dealerCard;
        else this.#kept[news.seat] = extremity(news.dealer_card);
        this.#strikeOff(news.dealer_card);
        this.#dealerCard = news.dealer_card;
        break;
      case 'bid':
        this.#habits[news.seat].note(this.#highest, news.bid);
        if (news.bid !== 'quit') this.#highest = news.bid;
        break;
      case 'round_over':
        this.#strikeOff(...news.cards);
        break;
    }
  }

  #strikeOff(...cards) {
    cards.forEach((card) => this.#unseen.delete(card));
  }

  /** The other seats, in their order after this one. */
  get #others() {
    return [1, 2, 3].map((after) => (this.#seat + after) % SEATS);
  }

  /** What a card can expect if all four stay for 2. */
  #expects(card) {
    const below = this.#others.map((seat) => this.#below(seat, card));
    return worth(below, 2);
  }

  /** The probability that the card of a seat is below this one. */
  #below(seat, card) {
    const mine = STRENGTH.get(card);
    if (this.#shown[seat]) return STRENGTH.get(this.#shown[seat]) < mine ? 1 : 0;
    let below = 0;
    let all = 0;
    for (const other of this.#unseen) {
      // A player rarely keeps a card that is worse than the dealer-card.
      const weight = extremity(other) < this.#kept[seat] ? 0.2 : 1;
      all += weight;
      if (STRENGTH.get(other) < mine) below += weight;
    }
    return below / all;
  }

  #bid({ card, bids, legal }) {
    const below = Array.from({ length: SEATS }, (_, seat) => this.#below(seat, card));
    // The value of staying against those who stay, by their `below`, and those who still have to bid.
    const staying = (lastBid, stayers, [seat, ...waiting]) => {
      if (seat === undefined) return worth(stayers, lastBid);
      return this.#habits[seat].expect(lastBid, (say) =>
        say === 'quit' ? staying(lastBid, stayers, waiting) : staying(say, [...stayers, below[seat]], waiting),
      );
    };
    const stayers = this.#others.filter((seat) => NUMBERS.includes(bids[seat])).map((seat) => below[seat]);
    const waiting = this.#others.filter((seat) => bids[seat] === null);
    const values = legal.map((say) => (say === 'quit' ? -2 : staying(say, stayers, waiting)));
    return legal[values.indexOf(Math.max(...values))];
  }
}

/** How often one seat has made each bid, by the highest bid before it. */
class Habits {
  #counts = new Map(
    NUMBERS.map((lowest) => [lowest, new Map(['quit', ...NUMBERS.filter((n) => n >= lowest)].map((say) => [say, 1]))]),
  );

  note(lowest, say) {
    const counts = this.#counts.get(lowest);
    counts.set(say, counts.get(say) + 1);
  }

  /** The mean of `worth(say)`. */
  expect(lowest, worth) {
    let sum = 0;
    let times = 0;
    for (const [say, count] of this.#counts.get(lowest)) {
      sum += count * worth(say);
      times += count;
    }
    return sum / times;
  }
}
