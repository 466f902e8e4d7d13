// @ts-check
// The five games: each has a module of its own, fetched with the first table of that game.

const GAMES = {
  ace_king_queen: () => import("./ace_king_queen.js"),
  gin_rummy: () => import("./gin_rummy.js"),
  high_low: () => import("./high_low.js"),
  three_card_poker: () => import("./three_card_poker.js"),
  blackjack: () => import("./blackjack.js"),
};

/** The module that describes and draws a game. @param {string} name @returns {Promise<any>} */
export function fetchGame(name) {
  return GAMES[name]();
}

/** The rules in short, for a person who sits down; the whole of them is in protocol/README.md. @type {Record<string, string>} */
export const RULES = {
  ace_king_queen: "Both ante 1 and get one of three cards: ace beats king, king beats queen. One seat bets 1 more or checks; after a bet the other calls 1 or folds. The higher card takes the pot.",
  gin_rummy: "Draw a card, discard one. Three or four of a rank, or three and more of a suit in a row, are a meld; the rest is deadwood: ace 1, court cards 10. With at most 10 deadwood you may knock: the lower deadwood scores the difference, and 25 more for gin (no deadwood) or against a knock that was higher.",
  high_low: "Everybody has one card. In turn keep it or swap it with the dealer-card, which all see. Then bid 2 to 10, no less than the bid before, or quit for 2. All who stay pay the last bid; the highest and the lowest card of theirs share the pot. The ace is highest, the two lowest.",
  three_card_poker: "Name an ante before you see your cards, then play for as much again, or fold and lose it. A dealer below queen-high does not qualify: you win the ante alone. Else the better hand wins both: straight flush, three of a kind, straight, flush, pair.",
  blackjack: "Bet, then hit or stand: closest to 21 wins, over 21 loses at once. An ace counts 1 or 11, court cards 10. A two-card 21 is a natural and pays half as much again. The dealer hits below 17. The least bet is 5.",
};

/** What a game's rounds are called. @param {string} game */
export function unitOf(game) {
  return game === "ace_king_queen" || game === "blackjack" ? "hand" : "round";
}
