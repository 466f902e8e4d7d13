// What bot.cpp defines, for main.cpp and bot_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session.hpp"

// What the bot plays.
extern const std::vector<std::string> games;

// Makes the player for a `match`.
std::unique_ptr<session::Player> make_player(const session::Json& match);
