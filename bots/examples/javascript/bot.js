// A bot for all of our games: it plays high-low well, and the others at random.

import { anyLegal, play } from './session.js';
import { HighLow } from './high_low.js';

/** Plays at random; `decide` gets the arena's question. */
class Anything {
  decide(question) {
    return anyLegal(question.legal);
  }
}

await play({
  games: ['ace_king_queen', 'gin_rummy', 'high_low', 'three_card_poker', 'blackjack'],
  makePlayer: (match) => (match.game === 'high_low' ? new HighLow(match) : new Anything()),
});
