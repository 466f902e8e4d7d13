"""Bots on other machines: a host runs their processes, and the arena referees their matches.

`remote_bot.py` takes the place of a launcher in the arena, so nothing else there knows where a
process runs. Hosts report and receive bots over NATS; the bots' bytes use the arena's own port.
"""
