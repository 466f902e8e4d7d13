// The definitions of bot.cpp that main.cpp and bot_test.cpp use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session.hpp"

// The names of the games that the bot plays.
extern const std::vector<std::string> games;

// Makes the player for one match, from the message `match`.
std::unique_ptr<session::Player> make_player(const session::Json& match);
