"""The kernel: how a game's rules are driven, one match, the shuffle, the wording of verdicts.

It knows no game, clock or I/O, draws no random numbers, and imports from `protocol` alone.
"""
