"""Processes of bots: how they are started, isolated, limited and stopped."""
