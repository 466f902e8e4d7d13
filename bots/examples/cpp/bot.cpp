// Plays blackjack by the cards that are left, and the other games at random.
#include "bot.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

using session::Json;

const std::vector<std::string> games{
    "ace_king_queen", "gin_rummy", "high_low", "three_card_poker", "blackjack",
};

namespace {

class AnyLegal : public session::Player {
public:
    Json decide(const Json& question) override { return session::any_legal(question.at("legal")); }
};

// ---- Blackjack

// The points of a card; an ace counts 1.
int points_of(const std::string& card) {
    constexpr std::string_view ranks = "A23456789TJQK";
    return std::min(static_cast<int>(ranks.find(card.at(0))) + 1, 10);
}

struct Hand {
    int points = 0;  // with every ace as 1
    bool has_ace = false;

    Hand with(int card) const { return {points + card, has_ace || card == 1}; }
    bool is_soft() const { return has_ace && points <= 11; }
    int total() const { return is_soft() ? points + 10 : points; }

    // Below, a card can only help; above, it can only hurt.
    bool is_doubtful() const { return is_soft() ? total() == 18 : 12 <= points && points <= 16; }
};

// The cards that the bot has not seen, including the dealer's hole card.
struct Deck {
    std::array<int, 11> left{0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 16};  // by what they count
    int size = 52;

    void take(int card) { --left[card], --size; }

    // The average of `value(card, deck without it)` over all cards that may come next.
    template <typename Value>
    double average(Value value) const {
        double sum = 0;
        for (int card = 1; card <= 10; ++card) {
            if (left[card] <= 0) continue;
            Deck rest = *this;
            rest.take(card);
            sum += left[card] * value(card, rest);
        }
        return sum / size;
    }
};

// What standing on a total wins on average, in bets.
double when_stood(int total, Hand dealer, const Deck& deck) {
    if (dealer.total() > 21) return 1;
    if (dealer.total() >= 17) return (total > dealer.total()) - (total < dealer.total());
    return deck.average([&](int card, const Deck& rest) {
        return when_stood(total, dealer.with(card), rest);
    });
}

// What hitting and the best play after it win on average.
double when_hit(Hand hand, Hand dealer, const Deck& deck) {
    return deck.average([&](int card, const Deck& rest) {
        const Hand then = hand.with(card);
        if (then.total() > 21) return -1.0;
        const double stood = when_stood(then.total(), dealer, rest);
        return then.is_doubtful() ? std::max(stood, when_hit(then, dealer, rest)) : stood;
    });
}

// Counts every card that is shown, and bets and draws by the cards that are left.
class Blackjack : public session::Player {
public:
    Json decide(const Json& question) override {
        return question.at("kind") == "bet" ? Json(bet(question)) : Json(draw(question));
    }

    void hear(const Json& news) override {
        if (news.at("kind") == "shuffled") deck_ = Deck{};
        if (news.at("kind") == "exposed") deck_.take(points_of(news.at("card")));
    }

private:
    // What a chip wins on the next hand, on average. With a new deck that is `fresh`. Each card that is
    // gone adds its `gone`, and counts more the fewer cards are left.
    double edge() const {
        constexpr double fresh = -.0129;
        constexpr std::array gone{
            .0, -.0087, .0032, .0038, .0046, .0058, .0039, .0029, .0010, -.0005, -.0034};
        double change = 0;
        for (int card = 1; card <= 10; ++card) {
            change += gone[card] * (Deck{}.left[card] - deck_.left[card]);
        }
        return fresh + change * 51 / deck_.size;
    }

    // Bets much when the cards are good. An even number, because a natural pays 3/2, rounded down.
    std::int64_t bet(const Json& question) const {
        const std::int64_t bankroll = question.at("bankroll"), low = 6, bold = 20;
        const auto wanted = edge() > 0 ? std::max(bold, bankroll / 40 * 2) : low;
        return std::min(wanted, bankroll);
    }

    // Hits if that wins more than to stand.
    std::string draw(const Json& question) const {
        const Hand dealer = Hand{}.with(points_of(question.at("upcard")));
        Hand hand;
        for (const Json& card : question.at("hand")) hand = hand.with(points_of(card));
        if (!hand.is_doubtful()) return hand.total() < (hand.is_soft() ? 18 : 12) ? "hit" : "stand";
        const bool hits = when_hit(hand, dealer, deck_) > when_stood(hand.total(), dealer, deck_);
        return hits ? "hit" : "stand";
    }

    Deck deck_;
};

}  // namespace

std::unique_ptr<session::Player> make_player(const Json& match) {
    if (match.at("game") == "blackjack") return std::make_unique<Blackjack>();
    return std::make_unique<AnyLegal>();
}
