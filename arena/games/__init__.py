"""The kernel of a game, a folder for each of our games, and statistics of results."""
