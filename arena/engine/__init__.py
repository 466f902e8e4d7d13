"""The kernel: how a game's rules are driven, one match, the shuffle, and who did what wrong.

It knows no game, no clock and no I/O, and draws no randomness of its own. It imports from `protocol` alone.
"""
