"""Bots on other machines: a host runs their processes, and the arena referees their matches.

The arena's part stands for a launcher (`remote_bot.py`), so that nothing else knows where a process
runs. NATS says who is there and places bots; their bytes travel over the arena's own port.
"""
