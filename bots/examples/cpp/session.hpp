// A bot's session with an arena: its messages, its matches, and its connection. It connects again
// when the connection is lost. It knows no game; the players do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace session {

using Json = nlohmann::json;

// Plays one match.
class Player {
public:
    virtual ~Player() = default;

    // Answers a question with something that its `legal` allows.
    virtual Json decide(const Json& question) = 0;

    // Takes note of what has happened. All news come before the next question.
    virtual void hear(const Json& news) { static_cast<void>(news); }
};

// Makes the player for one match, from the message `match`.
using MakePlayer = std::function<std::unique_ptr<Player>(const Json& match)>;

// Plays until the arena closes, and returns the exit status. The arguments are those of main:
// none, or --stdio for lines instead of a WebSocket.
int play(const std::vector<std::string>& games, const MakePlayer& make_player, int argc, char** argv);

// A random legal answer, from a list or from a range of whole numbers.
Json any_legal(const Json& legal);

}  // namespace session
