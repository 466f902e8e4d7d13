"""Sockets and pipes: bots connect, log in and are throttled; HTTP comes in here."""
