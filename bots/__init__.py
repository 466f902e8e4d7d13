"""Bots: the interfaces to write one, the house bots, and the client that connects them."""
