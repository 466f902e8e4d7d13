// Asks the bot what the arena would ask: make test.
#include "bot.hpp"

#include <cstdlib>
#include <iostream>

using session::Json;

namespace {

void expect(const Json& expected, const Json& got, const char* why) {
    if (got == expected) return;
    std::cerr << why << ": expected " << expected << ", got " << got << '\n';
    std::exit(EXIT_FAILURE);
}

Json draw(const char* upcard, const std::vector<std::string>& hand) {
    return {{"kind", "draw"}, {"upcard", upcard}, {"hand", hand}, {"legal", {"hit", "stand"}}};
}

Json bet(int bankroll) {
    return {{"kind", "bet"}, {"bankroll", bankroll}, {"legal", {{"min", 5}, {"max", bankroll}}}};
}

void draws_by_what_is_left() {
    const auto bot = make_player({{"game", "blackjack"}});
    expect("hit", bot->decide(draw("Th", {"5c", "6d"})), "no card busts eleven");
    expect("hit", bot->decide(draw("Th", {"As", "6d"})), "nor a soft seventeen");
    expect("stand", bot->decide(draw("6h", {"Ts", "3d"})), "the dealer's six is bad");
    expect("hit", bot->decide(draw("9h", {"As", "7d"})), "a soft eighteen loses to a nine");
    expect("stand", bot->decide(draw("2h", {"As", "8d"})), "a soft nineteen does not");
    expect("stand", bot->decide(draw("Th", {"Ts", "5d", "6d"})), "asked at twenty-one, too");
}

void bets_by_what_is_left() {
    const auto bot = make_player({{"game", "blackjack"}});
    expect(6, bot->decide(bet(100)), "a new deck is the dealer's");
    for (const char* card : {"4s", "5s", "6s", "5d"}) bot->hear({{"kind", "exposed"}, {"card", card}});
    expect(20, bot->decide(bet(100)), "without four low cards it is the player's");
    expect(7, bot->decide(bet(7)), "no more than there is");
    bot->hear({{"kind", "shuffled"}});
    expect(6, bot->decide(bet(100)), "and then it is new again");
    expect(5, bot->decide(bet(5)), "the last chips");
}

void plays_the_other_games() {
    const auto bot = make_player({{"game", "high_low"}});
    bot->hear({{"kind", "dealt"}});
    expect(4, bot->decide({{"kind", "bid"}, {"legal", {4}}}), "the only element of a list");
    const auto most = 500'000'000'000;
    const Json ante{{"kind", "ante"}, {"legal", {{"min", most}, {"max", most}}}};
    expect(most, bot->decide(ante), "the only integer of a range");
}

}  // namespace

int main() {
    draws_by_what_is_left();
    bets_by_what_is_left();
    plays_the_other_games();
    std::cout << "ok\n";
}
