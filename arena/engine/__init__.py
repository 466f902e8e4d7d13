"""The kernel of rules, one match and the shuffle. It knows no game, no clock and no I/O."""
