// A bot for all five games: any legal answer, but in high-low a considered one.

import { anyLegal, play } from './session.js';
import { HighLow } from './high_low.js';

/** Whatever is legal; `decide` gets the question as the arena asks it. */
class Anything {
  decide(question) {
    return anyLegal(question.legal);
  }
}

await play({
  games: ['ace_king_queen', 'gin_rummy', 'high_low', 'three_card_poker', 'blackjack'],
  makePlayer: (match) => (match.game === 'high_low' ? new HighLow(match) : new Anything()),
});
