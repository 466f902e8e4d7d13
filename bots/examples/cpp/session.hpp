// A bot's session with an arena: its messages, its matches, and its connection, which is made
// again when it is lost. It knows no game; players do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace session {

using Json = nlohmann::json;

// What plays one match.
class Player {
public:
    virtual ~Player() = default;

    // Answers a question with something that its `legal` allows.
    virtual Json decide(const Json& question) = 0;

    // Hears what this seat has learnt, piece by piece, before the next question.
    virtual void hear(const Json& news) { static_cast<void>(news); }
};

// Makes the player for a `match`.
using MakePlayer = std::function<std::unique_ptr<Player>(const Json& match)>;

// Plays until the arena closes, and returns the exit status. The arguments are those of main:
// none, or --stdio for lines instead of a WebSocket.
int play(const std::vector<std::string>& games, const MakePlayer& make_player, int argc, char** argv);

// Any element of a list, or any integer of a range.
Json any_legal(const Json& legal);

}  // namespace session
