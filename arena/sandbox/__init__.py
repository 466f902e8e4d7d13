"""Processes of bots: how a command line becomes one that is isolated, limited, watched and ended, and leaves nothing behind.

It knows nothing of matches, and what the bots say goes through pipes and sockets that others hold.
"""
