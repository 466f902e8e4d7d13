#include "bot.hpp"

int main(int argc, char** argv) { return session::play(games, make_player, argc, argv); }
