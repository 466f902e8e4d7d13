"""Sockets and pipes: bots connect, log in and are throttled, frames go to the referee, HTTP is
answered.

The page and the instructor are Protocols here; competitions are unknown.
"""
