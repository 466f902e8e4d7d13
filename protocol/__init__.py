"""What a bot and the arena say to each other, and the arithmetic that both must agree on.

Imports nothing of ours: `arena` and `bots` both build on it.
"""
