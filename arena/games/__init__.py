"""The kernel of a game, one folder for each of ours, and the statistics of their results."""
