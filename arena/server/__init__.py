"""Sockets and pipes: log bots in, throttle strangers, pass frames to the referee, answer HTTP.

Here the page and the instructor are Protocols, and competitions are unknown.
"""
